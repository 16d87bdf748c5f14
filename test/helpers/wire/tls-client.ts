/** A plain HTTP/1.1 client of a URL, with or without TLS, for servers behind proxies. */
import { once } from "node:events";
import { type Agent, type IncomingMessage, request as requestHttp, type RequestOptions } from "node:http";
import { request as requestHttps } from "node:https";
import { text } from "node:stream/consumers";

/** A server, with the certificate that it has. */
export interface Server {
  readonly url: string;
  readonly ca: Buffer | undefined;
}

/** A request. */
export interface ThroughOptions extends Pick<RequestOptions, "headers" | "localAddress" | "method" | "signal"> {
  readonly body?: string;
  readonly agent?: Agent | false;
}

/** Sends a request, and resolves with the start of the response. */
export async function openThrough(
  { url, ca }: Server,
  path: string,
  { body, agent = false, ...options }: ThroughOptions = {},
): Promise<IncomingMessage> {
  const send = url.startsWith("https:") ? requestHttps : requestHttp;
  const request = send(new URL(url), { ...options, path, agent, ...(ca && { ca }) }).on("error", () => undefined);
  request.end(body);
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return response;
}

/** Sends a request, and resolves with the complete response. */
export async function requestThrough(
  server: Server,
  path: string,
  options: ThroughOptions = {},
): Promise<{ readonly status: number; readonly text: string }> {
  const response = await openThrough(server, path, options);
  return { status: response.statusCode!, text: await text(response) };
}
