/** Responses of the plain HTTP interface, and errors of gRPC and gRPC-Web: the same headers and one format of errors. */
import { RpcError } from "../errors.js";
import { statusFields } from "../grpc-status.js";
import type { HttpResponse, HttpResponseBody } from "./exchange.js";
import { pageHeaders } from "../request-headers.js";
import type { RpcMedia } from "./rpc-requests.js";

/** Header that keeps browsers from running text of users as another type than the response declares. */
export const nosniff: readonly string[] = ["X-Content-Type-Options", "nosniff"];

/**
 * Headers of every response, as a flat list of names and values like all header lists. Pages of every origin may read
 * public responses. The node uses no cookies.
 */
export const corsHeaders: readonly string[] = [
  ...nosniff,
  "Access-Control-Allow-Origin",
  "*",
  "Access-Control-Expose-Headers",
  "ETag, X-Node-Dormant, X-Request-Id, Gatehouse-Block, Gatehouse-Unproved, Retry-After, RateLimit, RateLimit-Policy, grpc-status, grpc-message, grpc-status-details-bin",
];

/** Headers of the response to a preflight (`OPTIONS` on any path). */
export const preflightHeaders: readonly string[] = [
  ...corsHeaders,
  "Access-Control-Allow-Methods",
  "GET, POST, OPTIONS",
  "Access-Control-Allow-Headers",
  pageHeaders.join(", "),
  "Access-Control-Max-Age",
  "86400",
];

export const privateHeaders: readonly string[] = ["Cache-Control", "private, no-store"];

/** Headers of every streaming response, in every protocol: proxies must neither cache nor buffer the messages. */
export const streamHeaders: readonly string[] = [...privateHeaders, "X-Accel-Buffering", "no"];

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
  return jsonResponse(requestId, failure.kind.httpStatus, { body: errorBody(failure) }, [
    ...privateHeaders,
    ...headers,
    ...errorHeaders(failure),
  ]);
}

/** Returns the error response of gRPC or gRPC-Web: without a body, as both protocols permit. */
export function statusResponse(
  requestId: string,
  failure: RpcError,
  { protocol, format, isText }: RpcMedia,
  headers: readonly string[] = [],
): HttpResponse {
  const fields = statusFields(failure, requestId);
  const contentType = ["Content-Type", `application/${protocol}${isText ? "-text" : ""}+${format}`];
  return protocol === "grpc"
    ? { status: 200, headers: [...contentType, ...nosniff], trailers: fields }
    : { status: 200, headers: [...contentType, ...corsHeaders, ...headers, ...fields, ...errorHeaders(failure)] };
}

export function errorHeaders({ headers, retryAfterS }: RpcError): readonly string[] {
  return retryAfterS === undefined ? headers : [...headers, "Retry-After", String(retryAfterS)];
}

export function errorBody(failure: RpcError): string {
  return JSON.stringify({
    success: false,
    error: failure.message,
    errorCode: failure.reason,
    retryAfter: failure.retryAfterS,
  });
}

export function methodNotAllowed(method: string, allowed: readonly string[]): RpcError {
  const list = allowed.join(", ");
  const message = `${method} is not allowed here; allowed: ${list}.`;
  return new RpcError("METHOD_NOT_ALLOWED", message, undefined, ["Allow", list]);
}

/** Creates the 304 response for a client that already has the response. */
export function notModified(requestId: string, headers: readonly string[]): HttpResponse {
  return { status: 304, headers: ["X-Request-Id", requestId, ...corsHeaders, ...headers] };
}
