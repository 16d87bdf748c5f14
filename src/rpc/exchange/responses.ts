/** Answers of the plain HTTP interface: one content type, one error body, the same headers on every route. */
import { Failure } from "../errors.js";
import { forCallerAlone } from "./caching.js";
import { corsHeaders } from "./cors.js";
import type { Answer, AnswerBody } from "./exchange.js";

/** A JSON text as the whole body. `headers` is a flat list of names and values. */
export function jsonAnswer(
  requestId: string,
  status: number,
  { body, isShared }: AnswerBody,
  headers: readonly string[] = [],
): Answer {
  return {
    status,
    headers: ["Content-Type", "application/json; charset=utf-8", "X-Request-Id", requestId, ...corsHeaders, ...headers],
    body,
    isShared,
  };
}

/** A failure in the one error body: `{success, error, errorCode}`, with `retryAfter` where there is one. */
export function failureAnswer(requestId: string, failure: Failure, headers: readonly string[] = []): Answer {
  const { httpStatus } = failure.kind;
  return jsonAnswer(requestId, httpStatus, { body: failureBody(failure) }, [
    ...forCallerAlone,
    ...headers,
    ...failureHeaders(failure),
  ]);
}

/** The headers that come with a failure: a flat list of names and values. */
export function failureHeaders(failure: Failure): readonly string[] {
  return failure.retryAfterS === undefined
    ? failure.headers
    : [...failure.headers, "Retry-After", String(failure.retryAfterS)];
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

/** The failure of a request with the wrong HTTP method. */
export function methodNotAllowed(method: string, allowed: readonly string[]): Failure {
  const list = allowed.join(", ");
  return new Failure("METHOD_NOT_ALLOWED", `${method} is not allowed here; allowed: ${list}.`, undefined, [
    "Allow",
    list,
  ]);
}
