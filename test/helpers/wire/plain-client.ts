/** A plain HTTP client that exposes every byte of the response. */
import { once } from "node:events";
import { type Agent, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";

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
