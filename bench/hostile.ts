/** How `/health` fares, and what memory does, while somebody misbehaves. */
import { request as httpRequest } from "node:http";
import { connect as connectHttp2, constants } from "node:http2";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { probeHealth } from "./prober.js";
import type { BenchContext, Row } from "./row.js";
import { latencyFigures } from "./statistics.js";

const getVersion = "/gatehouse.info.v1.InfoService/GetVersion";
const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));

/** Does harm until the signal is aborted. */
type Attack = (port: number, signal: AbortSignal) => Promise<void>;

const attacks: Readonly<Record<string, Attack>> = {
  "nobody misbehaves": async (_port, signal) => {
    await untilAborted(signal);
  },
  "10,000 half-open connections": async (port, signal) => {
    const sockets: Socket[] = [];
    for (let i = 0; i < 10_000 && !signal.aborted; i++) {
      sockets.push(connect(port, "127.0.0.1").on("error", () => undefined));
      if (i % 50 === 0) {
        await sleep(5);
      }
    }
    await untilAborted(signal);
    sockets.forEach((socket) => socket.destroy());
  },
  "HTTP/2 rapid resets": async (port, signal) => {
    while (!signal.aborted) {
      const session = connectHttp2(`http://127.0.0.1:${port}`).on("error", () => undefined);
      for (let i = 0; i < 2_000 && !session.destroyed; i++) {
        const stream = session.request({ ":method": "POST", ":path": getVersion, "content-type": "application/grpc" });
        stream.on("error", () => undefined).close(constants.NGHTTP2_CANCEL);
        if (i % 100 === 0) {
          await sleep(1);
        }
      }
      session.destroy();
    }
  },
  "compressed bombs": repeat((port) =>
    post(port, getVersion, bomb, { "Content-Type": "application/json", "Content-Encoding": "gzip" }),
  ),
  "bodies of 1 MB that are no JSON": repeat((port) =>
    post(port, "/", Buffer.alloc(1_000_000, "["), { "Content-Type": "application/json" }),
  ),
  "headers of 12 kB": repeat((port) => post(port, "/version", Buffer.alloc(0), { X: "x".repeat(12_000) })),
  "forged signatures": repeat((port) =>
    post(port, "/", Buffer.from("{}"), {
      identity: `ed25519:0x${"1".repeat(64)}`,
      timestamp: String(Date.now()),
      signature: "0".repeat(128),
    }),
  ),
  "requests that never end": async (port, signal) => {
    const sockets = Array.from({ length: 1_000 }, () =>
      connect(port, "127.0.0.1", function (this: Socket) {
        this.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
      }).on("error", () => undefined),
    );
    while (!signal.aborted) {
      sockets.forEach((socket) => socket.writable && socket.write("a"));
      await sleep(50);
    }
    sockets.forEach((socket) => socket.destroy());
  },
};

/** Runs each attack for a while. */
export async function benchHostile({ node, seconds, say }: BenchContext): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [name, attack] of Object.entries(attacks)) {
    say(name);
    const before = (await node.usage()).rssBytes;
    const over = new AbortController();
    const attacking = attack(node.port, over.signal);
    const latencies = await probeHealth({ port: node.port, seconds: Math.max(3, 2 * seconds) });
    over.abort();
    await attacking;
    const after = (await node.usage()).rssBytes;
    rows.push({
      name,
      figures: {
        ...latencyFigures(latencies, "/health "),
        "memory before MiB": before / 1024 ** 2,
        "after MiB": after / 1024 ** 2,
      },
    });
    await sleep(500);
  }
  return rows;
}

/** Eight of them at a time. */
function repeat(once: (port: number) => Promise<unknown>): Attack {
  return async (port, signal) => {
    const run = async (): Promise<void> => {
      while (!signal.aborted) {
        await once(port);
      }
    };
    await Promise.all(Array.from({ length: 8 }, run));
  };
}

/** Resolves at the answer; a refusal while the body is still being sent is one too. */
async function post(port: number, path: string, body: Buffer, headers: Record<string, string>): Promise<void> {
  await new Promise<void>((resolve) => {
    const request = httpRequest({ host: "127.0.0.1", port, path, method: "POST", headers }, (response) => {
      response.resume().once("close", resolve);
    });
    request.once("error", () => resolve());
    request.end(body);
  });
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) {
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  }
}
