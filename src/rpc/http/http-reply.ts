/** Writes answers of the plain HTTP interface: one content type, one error body, the same headers on every route. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { corsHeaders } from "./cors.js";
import { Failure } from "../errors.js";

/** Writes a JSON text as the whole response. `headers` is a flat list of names and values. */
export function sendJson(
  response: ServerResponse,
  requestId: string,
  status: number,
  body: string,
  headers: readonly string[] = [],
): void {
  response
    .writeHead(status, [
      "Content-Type",
      "application/json; charset=utf-8",
      "Content-Length",
      String(Buffer.byteLength(body)),
      "X-Request-Id",
      requestId,
      ...corsHeaders,
      ...headers,
    ])
    .end(body);
}

/** Writes a failure in the one error body: `{success, error, errorCode}`, with `retryAfter` where there is one. */
export function sendFailure(response: ServerResponse, requestId: string, failure: Failure): void {
  sendJson(response, requestId, failure.kind.httpStatus, failureBody(failure), failureHeaders(failure));
}

/** The headers that come with a failure: a flat list of names and values. */
export function failureHeaders(failure: Failure): readonly string[] {
  return failure.retryAfterS === undefined
    ? failure.headers
    : [...failure.headers, "Retry-After", String(failure.retryAfterS)];
}

/** A flat list of header names and values as pairs. */
export function headerPairs(list: readonly string[]): [name: string, value: string][] {
  return Array.from({ length: list.length / 2 }, (_, i) => [list[2 * i]!, list[2 * i + 1]!]);
}

/** The error body as JSON text. */
export function failureBody(failure: Failure): string {
  return JSON.stringify({
    success: false,
    error: failure.message,
    errorCode: failure.reason,
    ...(failure.retryAfterS === undefined ? {} : { retryAfter: failure.retryAfterS }),
  });
}

/** The path and the query of a request, without the origin that a proxy may put before them. */
export function splitUrl(request: IncomingMessage): { readonly path: string; readonly query: string } {
  let url = request.url ?? "/";
  if (!url.startsWith("/")) {
    url = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*(.*)$/i.exec(url)?.[1] ?? url;
    url = url.startsWith("/") ? url : `/${url}`;
  }
  const mark = url.indexOf("?");
  return mark < 0 ? { path: url, query: "" } : { path: url.slice(0, mark), query: url.slice(mark + 1) };
}

/** The failure of a request with the wrong HTTP method. */
export function methodNotAllowed(method: string, allowed: readonly string[]): Failure {
  const list = allowed.join(", ");
  return new Failure("METHOD_NOT_ALLOWED", `${method} is not allowed here; allowed: ${list}.`, undefined, [
    "Allow",
    list,
  ]);
}
