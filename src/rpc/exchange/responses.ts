/** Responses of the plain HTTP interface: one content type, one error format, and the same headers on every route. */
import { RpcError } from "../errors.js";
import { privateHeaders } from "./caching.js";
import { corsHeaders } from "./cors.js";
import type { HttpResponse, HttpResponseBody } from "./exchange.js";

/** Creates a response with a JSON body. `headers` is a flat list of names and values. */
export function jsonResponse(
  requestId: string,
  status: number,
  { body, isShared }: HttpResponseBody,
  headers: readonly string[] = [],
): HttpResponse {
  return {
    status,
    headers: ["Content-Type", "application/json; charset=utf-8", "X-Request-Id", requestId, ...corsHeaders, ...headers],
    body,
    isShared,
  };
}

/** Creates an error response with the body `{success, error, errorCode}`, and `retryAfter` if the error has one. */
export function errorResponse(requestId: string, failure: RpcError, headers: readonly string[] = []): HttpResponse {
  const { httpStatus } = failure.kind;
  return jsonResponse(requestId, httpStatus, { body: errorBody(failure) }, [
    ...privateHeaders,
    ...headers,
    ...errorHeaders(failure),
  ]);
}

/** Returns the headers of an error: a flat list of names and values. */
export function errorHeaders(failure: RpcError): readonly string[] {
  return failure.retryAfterS === undefined
    ? failure.headers
    : [...failure.headers, "Retry-After", String(failure.retryAfterS)];
}

/** Returns the error body as JSON text. */
export function errorBody(failure: RpcError): string {
  return JSON.stringify({
    success: false,
    error: failure.message,
    errorCode: failure.reason,
    ...(failure.retryAfterS === undefined ? {} : { retryAfter: failure.retryAfterS }),
  });
}

/** Creates the error for a request with an unsupported HTTP method. */
export function methodNotAllowed(method: string, allowed: readonly string[]): RpcError {
  const list = allowed.join(", ");
  return new RpcError("METHOD_NOT_ALLOWED", `${method} is not allowed here; allowed: ${list}.`, undefined, [
    "Allow",
    list,
  ]);
}
