/** Every transport of clients, with plain requests over each. */
import { Http2SessionManager } from "@connectrpc/connect-node";
import { once } from "node:events";
import { Agent as HttpAgent, request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2, constants } from "node:http2";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { type AddressInfo, connect, createServer } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import type { PlainRequest, PlainResponse } from "./plain-client.js";

/** The transports: the HTTP version, and the ALPN offer of the client; undefined for cleartext. */
export const transports = {
  "HTTP/1.1": { http: "1.1", alpn: undefined },
  "HTTP/2 by prior knowledge": { http: "2", alpn: undefined },
  "TLS with ALPN h2": { http: "2", alpn: ["h2"] },
  "TLS with ALPN http/1.1": { http: "1.1", alpn: ["http/1.1"] },
  "TLS with ALPN h2 and http/1.1": { http: "2", alpn: ["h2", "http/1.1"] },
} as const;

/** The name of a transport. */
export type TransportName = keyof typeof transports;

/** A server, and the certificate that TLS clients trust. */
export interface Target {
  readonly port: number;
  readonly ca?: Buffer;
  /** The source address of cleartext clients of Connect and gRPC-Web; by default 127.0.0.1. */
  readonly localAddress?: string;
}

/** A response with an open body. */
export interface OpenResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: AsyncIterable<Buffer>;
}

/** A client over one transport, with a limited number of connections. */
export interface TransportClient {
  readonly name: TransportName;
  /** The URL, without a slash at its end. */
  readonly baseUrl: string;
  /** Sends a request with an unchanged path. Resolves at the start of the response. */
  open(path: string, request?: PlainRequest, signal?: AbortSignal): Promise<OpenResponse>;
  /** Sends a request, and reads the complete response. */
  ask(path: string, request?: PlainRequest): Promise<PlainResponse>;
  close(): void;
}

const host = "127.0.0.1";
const maxConnections = 8;
/** The timeout of a client, generous for a busy machine. */
const patienceMs = 20_000;

/** Returns the URL of a target over this transport. */
export function baseUrlOf(name: TransportName, { port }: Target): string {
  return `${transports[name].alpn === undefined ? "http" : "https"}://${host}:${port}`;
}

/** Connects over TLS, and offers these protocols. */
export function openTls({ port, ca }: Target, alpn: readonly string[]): TLSSocket {
  return connectTls({ port, host, ALPNProtocols: [...alpn], ...(ca && { ca }) });
}

/** Creates a client that connects on its first request. */
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

/** Reads the complete body of a response. */
export async function readText({ body }: OpenResponse): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of body) {
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Creates an agent with keep-alive connections to a target, for `http` and `https`. */
export function createAgent(name: TransportName, { ca, localAddress }: Target): HttpAgent {
  const { alpn } = transports[name];
  const options = { keepAlive: true, maxSockets: maxConnections, ...(localAddress && { localAddress }) };
  return alpn === undefined
    ? new HttpAgent(options)
    : new HttpsAgent({ ...options, ALPNProtocols: [...alpn], ...(ca && { ca }) });
}

/** Creates the HTTP/2 session manager of Connect clients. */
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
 * Opens a cleartext port that forwards connections to a target over TLS, for clients that cannot configure their ALPN
 * offer.
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
