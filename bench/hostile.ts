/** How `/health` fares, and what memory does, while somebody misbehaves. */
import { createClient } from "@connectrpc/connect";
import { generateKeyPairSync, sign } from "node:crypto";
import { request as httpRequest } from "node:http";
import { connect as connectHttp2, constants } from "node:http2";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { gzipSync } from "node:zlib";
import { ControlService } from "../gen/gatehouse/control/v1/control_pb.js";
import { createCertificate } from "../src/base/certificate.js";
import { connectStranger, type OddKey, type OddPeer, startOddPeer } from "../test/helpers/odd-peer.js";
import { controlOf } from "./control.js";
import { probeHealth } from "./prober.js";
import type { BenchContext, Row } from "./row.js";
import { latencyFigures } from "./statistics.js";

const getVersion = "/gatehouse.info.v1.InfoService/GetVersion";
const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));

/** What is attacked. */
export interface Target {
  readonly port: number;
  /** Its port for other nodes. */
  readonly omniPort: number;
  readonly dataDir: string;
  readonly genesisHash: string;
}

/** Does harm until the signal is aborted. */
type Attack = (port: number, signal: AbortSignal, target: Target) => Promise<void>;

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
  "forged handshakes": async (_port, signal, { omniPort, genesisHash }) => {
    const stranger = connectStranger(
      { teardown: (close) => signal.addEventListener("abort", close) },
      omniPort,
      oddKey(),
    );
    const forge = async (i: number): Promise<void> => {
      for (let port = i; !signal.aborted; port = (port % 60_000) + 8) {
        const said = { endpoint: `https://127.0.0.1:${port}`, genesisHash, signer: oddKey() };
        await stranger.handshake(said).catch(() => undefined);
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_, i) => forge(i + 1)));
  },
  "handshakes from nobody's addresses": async (_port, signal, { omniPort, genesisHash }) => {
    const greet = async (i: number): Promise<void> => {
      const key = oddKey();
      const stranger = connectStranger({ teardown: (close) => signal.addEventListener("abort", close) }, omniPort, key);
      for (let port = i; !signal.aborted; port = (port % 60_000) + 8) {
        await stranger.handshake({ endpoint: `https://127.0.0.1:${port}`, genesisHash }).catch(() => undefined);
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_, i) => greet(i + 1)));
  },
  "TLS handshakes between nodes": async (_port, signal, { omniPort }) => {
    const { cert, key } = createCertificate(oddKey().privateKey);
    const shake = async (): Promise<void> => {
      while (!signal.aborted) {
        const socket = connectTls({
          port: omniPort,
          host: "127.0.0.1",
          rejectUnauthorized: false,
          ALPNProtocols: ["h2"],
          cert,
          key,
        });
        await new Promise((resolve) => socket.once("secureConnect", resolve).once("error", resolve));
        socket.destroy();
      }
    };
    await Promise.all(Array.from({ length: 4 }, shake));
  },
  "a peer that tells of 10,000 addresses": oddPeer({
    peers: Array.from({ length: 10_000 }, (_, i) => ({ endpoint: `https://127.0.0.1:${i + 1}`, identity: "" })),
  }),
  "a peer that streams without end": oddPeer({
    async blocks(_, send) {
      for (;;) {
        await send(undefined);
      }
    },
  }),
};

/** A peer that the operator has added, and that does not behave. */
function oddPeer(odd: Pick<OddPeer, "peers" | "blocks">): Attack {
  return async (_port, signal, { dataDir, genesisHash }) => {
    const control = createClient(ControlService, controlOf(dataDir));
    const closers: (() => unknown)[] = [];
    const teardown = { teardown: (close: () => unknown) => closers.push(close) };
    while (!signal.aborted) {
      const peer = await startOddPeer(teardown, { key: oddKey(), genesisHash, ...odd });
      await control.addPeer({ endpoint: peer.endpoint });
      await Promise.race([untilAborted(signal), sleep(500)]);
      await control.removePeer({ endpoint: peer.endpoint });
    }
    closers.forEach((close) => close());
  };
}

function oddKey(): OddKey {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const raw = publicKey.export({ format: "der", type: "spki" }).subarray(-32);
  return { publicKey: `0x${raw.toString("hex")}`, privateKey, sign: (bytes) => sign(null, bytes, privateKey) };
}

/** Runs each attack for a while. */
export async function benchHostile({
  node,
  seconds,
  say,
  dataDir,
  genesisHash,
}: BenchContext & Pick<Target, "dataDir" | "genesisHash">): Promise<Row[]> {
  const target = { port: node.port, omniPort: node.omniPort ?? 0, dataDir, genesisHash };
  const rows: Row[] = [];
  for (const [name, attack] of Object.entries(attacks)) {
    say(name);
    const before = (await node.usage()).rssBytes;
    const over = new AbortController();
    const attacking = attack(node.port, over.signal, target);
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
