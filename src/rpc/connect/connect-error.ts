/** How Connect tells of a failure. */
import { type Code, ConnectError } from "@connectrpc/connect";
import {
  codeToHttpStatus,
  contentTypeStreamJson,
  contentTypeStreamProto,
  endStreamFlag,
  errorToJsonBytes,
  errorToJson,
} from "@connectrpc/connect/protocol-connect";
import type { Failure } from "../errors.js";
import { failureDetails } from "../failure-details.js";
import { corsHeaders } from "../exchange/cors.js";
import { writeEnvelope } from "../exchange/envelope.js";
import type { Answer } from "../exchange/exchange.js";
import { failureHeaders } from "../exchange/responses.js";

/** A failure as the library has it. */
export function toConnectError(failure: Failure): ConnectError {
  const headers = failureHeaders(failure);
  return new ConnectError(
    failure.message,
    failure.kind.grpcCode as number as Code,
    Array.from({ length: headers.length / 2 }, (_, i): [string, string] => [headers[2 * i]!, headers[2 * i + 1]!]),
    failureDetails(failure),
  );
}

/** A failure as the whole answer to a unary call. */
export function unaryFailure(requestId: string, failure: Failure, headers: readonly string[]): Answer {
  const error = toConnectError(failure);
  return {
    status: codeToHttpStatus(error.code),
    headers: [
      ...["Content-Type", "application/json", "X-Request-Id", requestId],
      ...corsHeaders,
      ...headers,
      ...failureHeaders(failure),
    ],
    body: Buffer.from(errorToJsonBytes(error, undefined)),
  };
}

/** A failure as the whole answer to a call of a stream: the message that ends it. */
export function streamFailure(
  requestId: string,
  failure: Failure,
  headers: readonly string[],
  format: "proto" | "json",
): Answer {
  const end = Buffer.from(JSON.stringify({ error: errorToJson(toConnectError(failure), undefined) }));
  return {
    status: 200,
    headers: [
      ...["Content-Type", format === "json" ? contentTypeStreamJson : contentTypeStreamProto],
      ...["X-Request-Id", requestId],
      ...corsHeaders,
      ...headers,
      ...failureHeaders(failure),
    ],
    body: writeEnvelope(endStreamFlag, end),
  };
}
