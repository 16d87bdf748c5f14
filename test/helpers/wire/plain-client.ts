/** A plain HTTP client that exposes every byte of the response. */
import { once } from "node:events";
import { type Agent, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";
import { type ClientHttp2Session, connect as connectHttp2, type Settings } from "node:http2";
import { connect, type Socket } from "node:net";
import type { Teardown } from "../nodes/teardown.js";

/** A complete response. */
export interface PlainResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** A request. */
export interface PlainRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Buffer;
}

/** Creates a POST request with a JSON body: a value, or text that is sent as it is. */
export function jsonPost(body: unknown, headers: Readonly<Record<string, string>> = {}) {
  return {
    method: "POST",
    body: typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body),
    headers: { "Content-Type": "application/json", ...headers },
  };
}

/** The connection of a request. */
interface Connection {
  /** The source address; by default 127.0.0.1. */
  readonly localAddress?: string;
  /** By default, each request has a new connection. */
  readonly agent?: Agent | false;
  readonly signal?: AbortSignal;
}

/** Sends a request. The path is sent without normalization. */
export async function ask(
  port: number,
  path: string,
  { method = "GET", headers = {}, body }: PlainRequest = {},
  connection: Connection = {},
): Promise<PlainResponse> {
  const to = { host: "127.0.0.1", port, localAddress: "127.0.0.1", agent: false as const, ...connection };
  const request = httpRequest({ ...to, path, method, headers }).on("error", () => undefined);
  request.end(body);
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return {
    status: response.statusCode!,
    headers: response.headers,
    text: (await buffer(response)).toString("utf8"),
  };
}

/** Requests JSON. */
export async function askJson<T = Record<string, unknown>>(port: number, path: string): Promise<T> {
  return JSON.parse((await ask(port, path)).text) as T;
}

/** Opens a connection, which the server may close at once. */
export function openFrom(t: Teardown, port: number, localAddress: string): Socket {
  const socket = connect({ port, host: "127.0.0.1", localAddress }).on("error", () => undefined);
  t.teardown(() => socket.destroy());
  return socket;
}

/** Opens an HTTP/2 session. */
export function sessionFrom(
  t: Teardown,
  port: number,
  localAddress: string,
  settings: Settings = {},
): ClientHttp2Session {
  const createConnection = (): Socket => openFrom(t, port, localAddress);
  const session = connectHttp2("http://127.0.0.1", { createConnection, settings }).on("error", () => undefined);
  t.teardown(() => session.destroy());
  return session;
}

/** Sends a plain request over a new connection. */
export async function askFrom(port: number, path: string, localAddress: string): Promise<PlainResponse> {
  return await ask(port, path, {}, { localAddress });
}

/** Resolves to the first bytes; undefined if the connection closes without data. */
export async function firstBytes(socket: Socket): Promise<string | undefined> {
  if (socket.closed) {
    return undefined;
  }
  const bytes = once(socket, "data").then(
    ([chunk]) => String(chunk),
    () => undefined,
  );
  const closed = new Promise<undefined>((resolve) => socket.once("close", () => resolve(undefined)));
  return await Promise.race([bytes, closed]);
}
