import { type Code, ConnectError } from "@connectrpc/connect";
import {
  codeToHttpStatus,
  contentTypeStreamJson,
  contentTypeStreamProto,
  endStreamFlag,
  errorToJsonBytes,
  errorToJson,
} from "@connectrpc/connect/protocol-connect";
import type { RpcError } from "../errors.js";
import { failureDetails } from "../grpc-status.js";
import { corsHeaders, errorHeaders } from "../exchange/responses.js";
import { writeEnvelope } from "../exchange/rpc-requests.js";
import type { HttpResponse } from "../exchange/exchange.js";

export function toConnectError(failure: RpcError): ConnectError {
  const headers = errorHeaders(failure);
  return new ConnectError(
    failure.message,
    failure.kind.grpcCode as number as Code,
    Array.from({ length: headers.length / 2 }, (_, i): [string, string] => [headers[2 * i]!, headers[2 * i + 1]!]),
    failureDetails(failure),
  );
}

export function unaryError(requestId: string, failure: RpcError, headers: readonly string[]): HttpResponse {
  const error = toConnectError(failure);
  return {
    status: codeToHttpStatus(error.code),
    headers: headersOf("application/json", requestId, failure, headers),
    body: Buffer.from(errorToJsonBytes(error, undefined)),
  };
}

/** Returns the error response of a streaming call: a body that consists of the end-stream message. */
export function streamError(
  requestId: string,
  failure: RpcError,
  headers: readonly string[],
  format: "proto" | "json",
): HttpResponse {
  const end = Buffer.from(JSON.stringify({ error: errorToJson(toConnectError(failure), undefined) }));
  return {
    status: 200,
    headers: headersOf(format === "json" ? contentTypeStreamJson : contentTypeStreamProto, requestId, failure, headers),
    body: writeEnvelope(endStreamFlag, end),
  };
}

function headersOf(type: string, requestId: string, failure: RpcError, headers: readonly string[]): string[] {
  return ["Content-Type", type, "X-Request-Id", requestId, ...corsHeaders, ...headers, ...errorHeaders(failure)];
}
