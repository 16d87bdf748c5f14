/** Floods of what limits leave out, each in a thread of its own, so that the test can judge the node meanwhile. */
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect, type Socket, type TcpNetConnectOpts } from "node:net";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { brotliCompressSync } from "node:zlib";
import { isMainThread, Worker, workerData } from "node:worker_threads";
import type { Teardown } from "./teardown.js";
import { grpcMessage } from "../wire/http2-frames.js";

const [attacker, proxy] = ["127.0.0.5", "127.0.0.9"];
/** Address without a rate limit. */
export const exempt = "127.0.0.10";
const connections = 32;

export interface FloodTarget {
  readonly ports: Readonly<Record<string, number>>;
  readonly dir: string;
  /** Path of a read of a document with very many fields, for floods that ask for one. */
  readonly document?: string | undefined;
}

export interface Flood {
  readonly flags?: readonly string[];
  readonly isTls?: true;
  readonly hasDocument?: true;
  /** Starts a connection that floods the target, and does so again whenever it has closed. */
  readonly attack: (target: FloodTarget) => Socket;
}

const to = (port: number, localAddress: string): TcpNetConnectOpts => ({ host: "127.0.0.1", port, localAddress });

/** Writes to a socket for as long as it takes bytes, and does not care for responses. */
function pour(socket: Socket, bytes: () => Buffer): Socket {
  const write = (): void => {
    while (socket.writable && socket.write(bytes()));
  };
  return socket.on("connect", write).on("drain", write).resume();
}

const pipelined = (path: string, more = ""): Buffer =>
  Buffer.from(`GET ${path} HTTP/1.1\r\nHost: a\r\n${more}\r\n`.repeat(1_000));
const pourTo = (port: string, path: string, from = attacker): Flood["attack"] => {
  const bytes = pipelined(path);
  return ({ ports }) => pour(connect(to(ports[port]!, from)), () => bytes);
};

/** Keeps a hundred requests of a session open. */
function poll(session: ClientHttp2Session): void {
  const request = (): void => {
    if (session.closed || session.destroyed) {
      return;
    }
    const headers = { ":method": "POST", ":path": "/grpc.health.v1.Health/Check", "content-type": "application/grpc" };
    const stream = session.request({ ...headers, te: "trailers" });
    stream
      .on("error", () => undefined)
      .on("close", () => setImmediate(request))
      .resume();
    stream.end(grpcMessage(Buffer.alloc(0)));
  };
  session
    .on("error", () => undefined)
    .on("connect", () => {
      for (let i = 0; i < 100; i++) {
        request();
      }
    });
}

const grow =
  "POST /gatehouse.chain.v1.ChainService/SubmitTransaction HTTP/1.1\r\nHost: a\r\nContent-Type: application/proto\r\n";
/** A message of some bytes, which is 2 MiB when it is decompressed. */
const compressed = brotliCompressSync(Buffer.alloc(2 * 1024 * 1024 - 10));
const compressedRequest = Buffer.concat([
  Buffer.from(`${grow}Content-Encoding: br\r\nContent-Length: ${compressed.length}\r\n\r\n`),
  compressed,
]);
const tinyPieces = Buffer.from(
  `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${"1\r\n \r\n".repeat(20_000)}`,
);

const mcpCall = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
const mcpRequest =
  "POST /mcp HTTP/1.1\r\nHost: a\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\n" +
  `Content-Length: ${mcpCall.length}\r\n\r\n${mcpCall}`;
let clients = 0;

/** The flood of each row of the table of exemptions, by its first column. */
export const floods: Readonly<Record<string, Flood>> = {
  probes: { attack: pourTo("rpc", "/health") },
  "gRPC health checks": {
    attack({ ports }) {
      const socket = connect(to(ports["rpc"]!, attacker));
      poll(connectHttp2("http://127.0.0.1", { createConnection: () => socket }));
      return socket;
    },
  },
  "rejected requests": { attack: pourTo("rpc", "/nowhere") },
  "invalid HTTP": {
    attack: ({ ports }) => pour(connect(to(ports["rpc"]!, attacker)), () => Buffer.from("GET / HTTP/9\r\n\r\n")),
  },
  "compressed messages": {
    attack: ({ ports }) => pour(connect(to(ports["rpc"]!, attacker)), () => compressedRequest),
  },
  "bodies in tiny pieces": {
    attack: ({ ports }) => pour(connect(to(ports["rpc"]!, attacker)), () => tinyPieces),
  },
  "documents with very many fields": {
    hasDocument: true,
    attack: ({ ports, document }) => pour(connect(to(ports["rpc"]!, attacker)), () => pipelined(document!)),
  },
  "trusted proxies": {
    flags: ["--trusted-proxies", proxy],
    attack: ({ ports }) =>
      pour(connect(to(ports["rpc"]!, proxy)), () => {
        clients++;
        return pipelined("/chain/head", `X-Forwarded-For: 198.51.${(clients >> 8) % 256}.${clients % 256}\r\n`);
      }),
  },
  "exempt addresses": { attack: pourTo("rpc", "/health", exempt) },
  "internal port": { attack: pourTo("omni", "/") },
  "metrics port": { flags: ["--metrics-enabled", "--metrics-port", "0"], attack: pourTo("metrics", "/metrics") },
  "MCP port": {
    flags: ["--mcp-enabled", "--mcp-port", "0"],
    attack: ({ ports }) => pour(connect(to(ports["mcp"]!, attacker)), () => Buffer.from(mcpRequest.repeat(100))),
  },
  "control socket": {
    attack: ({ dir }) => pour(connect(join(dir, "control.sock")), () => pipelined("/")),
  },
  "TLS handshakes": {
    isTls: true,
    attack({ ports }) {
      const socket = connectTls({ ...to(ports["rpc"]!, attacker), rejectUnauthorized: false });
      return socket.once("secureConnect", () => socket.destroy());
    },
  },
  "worker processes": { flags: ["--workers", "2"], attack: pourTo("rpc", "/health") },
};

/** Floods a target until the test ends, in a thread. Resolves once the thread has started. */
export async function startFlood(t: Teardown, name: string, target: FloodTarget): Promise<void> {
  const worker = new Worker(new URL(import.meta.url), { workerData: { name, target } });
  t.teardown(() => worker.terminate());
  await new Promise((resolve) => worker.once("online", resolve));
}

// AVA may run test files in threads, too.
const task = workerData as { readonly name: string; readonly target?: FloodTarget } | null;
if (!isMainThread && task?.target !== undefined) {
  const { name, target } = task;
  const begin = (): void => {
    floods[name]!.attack(target)
      .on("error", () => undefined)
      .once("close", () => setTimeout(begin, 20));
  };
  for (let i = 0; i < connections; i++) {
    begin();
  }
}
