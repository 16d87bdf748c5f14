/** Every way in which a client's bytes reach a node, and plain requests over each. */
import { Http2SessionManager } from "@connectrpc/connect-node";
import { once } from "node:events";
import { Agent as HttpAgent, request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2, constants } from "node:http2";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { type AddressInfo, connect, createServer } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import type { PlainRequest, PlainResponse } from "./plain-client.js";

/** The transports: the HTTP that is spoken, and what the client offers by ALPN; cleartext where that is undefined. */
export const transports = {
  "HTTP/1.1": { http: "1.1", alpn: undefined },
  "HTTP/2 by prior knowledge": { http: "2", alpn: undefined },
  "TLS with ALPN h2": { http: "2", alpn: ["h2"] },
  "TLS with ALPN http/1.1": { http: "1.1", alpn: ["http/1.1"] },
  "TLS with ALPN h2 and http/1.1": { http: "2", alpn: ["h2", "http/1.1"] },
} as const;

/** One of them. */
export type TransportName = keyof typeof transports;

/** What is connected to; the certificate is trusted where TLS is spoken. */
export interface Target {
  readonly port: number;
  readonly ca?: Buffer;
  /** Where cleartext clients of Connect and gRPC-Web come from; 127.0.0.1 without. */
  readonly localAddress?: string;
}

/** An answer whose body is still coming. */
export interface OpenResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: AsyncIterable<Buffer>;
}

/** A client over one transport, with few connections. */
export interface TransportClient {
  readonly name: TransportName;
  /** Without a slash at its end. */
  readonly baseUrl: string;
  /** Sends a request, and resolves when its answer begins. The path goes out as it is. */
  open(path: string, request?: PlainRequest, signal?: AbortSignal): Promise<OpenResponse>;
  /** Sends a request, and reads the answer to its end. */
  ask(path: string, request?: PlainRequest): Promise<PlainResponse>;
  close(): void;
}

const host = "127.0.0.1";
const maxConnections = 8;
/** Of a client on a machine that has much else to do. */
const patienceMs = 20_000;

/** Where a target is, over this transport. */
export function baseUrlOf(name: TransportName, { port }: Target): string {
  return `${transports[name].alpn === undefined ? "http" : "https"}://${host}:${port}`;
}

/** Connects by TLS, offering these protocols. */
export function openTls({ port, ca }: Target, alpn: readonly string[]): TLSSocket {
  return connectTls({ port, host, ALPNProtocols: [...alpn], ...(ca && { ca }) });
}

/** A client that connects when it is first used. */
export function connectTransport(name: TransportName, target: Target): TransportClient {
  const { open, close } = transports[name].http === "1.1" ? overHttp1(name, target) : overHttp2(name, target);
  return {
    name,
    baseUrl: baseUrlOf(name, target),
    open,
    async ask(path, request) {
      const response = await open(path, request, AbortSignal.timeout(patienceMs));
      return { status: response.status, headers: response.headers, text: await readText(response) };
    },
    close,
  };
}

/** The body of an answer, read to its end. */
export async function readText({ body }: OpenResponse): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of body) {
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** What keeps the connections of Node's `http` and `https` to a target. */
export function createAgent(name: TransportName, { ca, localAddress }: Target): HttpAgent {
  const { alpn } = transports[name];
  const kept = { keepAlive: true, maxSockets: maxConnections, ...(localAddress && { localAddress }) };
  return alpn === undefined
    ? new HttpAgent(kept)
    : new HttpsAgent({ ...kept, ALPNProtocols: [...alpn], ...(ca && { ca }) });
}

/** What keeps the HTTP/2 connection of clients of Connect to a target. */
export function createSessions(name: TransportName, target: Target): Http2SessionManager {
  const { alpn } = transports[name];
  const { port, localAddress } = target;
  const open =
    alpn === undefined
      ? () => connect({ port, host, ...(localAddress && { localAddress }) })
      : () => openTls(target, alpn);
  const options = { createConnection: open };
  return new Http2SessionManager(baseUrlOf(name, target), {}, options);
}

function overHttp1(name: TransportName, target: Target): Pick<TransportClient, "open" | "close"> {
  const agent = createAgent(name, target);
  const start = transports[name].alpn === undefined ? httpRequest : httpsRequest;
  return {
    open: (path, { method = "GET", headers = {}, body } = {}, signal) =>
      new Promise((resolve, reject) => {
        const options = { host, port: target.port, path, method, headers, agent, ...(signal && { signal }) };
        const request = start(options, (response) =>
          resolve({ status: response.statusCode!, headers: response.headers, body: response }),
        );
        request.once("error", reject).end(body);
      }),
    close: () => agent.destroy(),
  };
}

function overHttp2(name: TransportName, target: Target): Pick<TransportClient, "open" | "close"> {
  const { alpn } = transports[name];
  let session: ClientHttp2Session | undefined;
  const connected = (): ClientHttp2Session => {
    if (session === undefined || session.destroyed || session.closed) {
      const options = alpn === undefined ? {} : { createConnection: () => openTls(target, alpn) };
      session = connectHttp2(baseUrlOf(name, target), options);
      session.on("error", () => undefined);
    }
    return session;
  };
  return {
    open: (path, { method = "GET", headers = {}, body } = {}, signal) =>
      new Promise((resolve, reject) => {
        const endStream = body === undefined && method !== "POST";
        const stream = connected().request({ ...headers, ":method": method, ":path": path }, { endStream });
        signal?.addEventListener("abort", () => stream.close(constants.NGHTTP2_CANCEL), { once: true });
        stream.once("response", ({ ":status": status, ...rest }) =>
          resolve({ status: Number(status), headers: rest, body: stream }),
        );
        stream.once("error", reject).once("close", () => reject(new Error("The stream was closed without an answer.")));
        if (!endStream) {
          stream.end(body);
        }
      }),
    close: () => session?.destroy(),
  };
}

/**
 * A cleartext port whose connections are carried to a target over TLS, for clients that do not let their user say what
 * they offer by ALPN.
 */
export async function startTlsBridge(
  target: Target,
  alpn: readonly string[],
): Promise<{ readonly port: number; close(): void }> {
  const open = new Set<{ destroy(): void }>();
  const server = createServer((outer) => {
    const inner = openTls(target, alpn);
    for (const [socket, other] of [
      [outer, inner],
      [inner, outer],
    ] as const) {
      open.add(socket);
      socket.setNoDelay(true);
      socket
        .on("error", () => other.destroy())
        .on("close", () => {
          open.delete(socket);
          other.destroy();
        });
    }
    outer.pipe(inner).pipe(outer);
  });
  server.listen(0, host);
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      open.forEach((socket) => socket.destroy());
      server.close();
    },
  };
}
