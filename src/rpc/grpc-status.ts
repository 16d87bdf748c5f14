/** Error status of rpc clients: details in the standard google.rpc types, and the fields of gRPC and gRPC-Web. */
import { create, type DescMessage, type Message, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { ErrorInfoSchema, RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../gen/google/rpc/status_pb.js";
import type { RpcError } from "./errors.js";

const domain = "gatehouse";

/** Returns an ErrorInfo with the reason, and a RetryInfo if a retry makes sense later. */
export function failureDetails(failure: RpcError): { desc: DescMessage; value: Message }[] {
  const info = { desc: ErrorInfoSchema, value: create(ErrorInfoSchema, { reason: failure.reason, domain }) };
  if (failure.retryAfterS === undefined) {
    return [info];
  }
  const retryDelay = { seconds: BigInt(failure.retryAfterS) };
  return [info, { desc: RetryInfoSchema, value: create(RetryInfoSchema, { retryDelay }) }];
}

/** Returns the status fields of an error: a flat list of names and values. */
export function statusFields(failure: RpcError, requestId: string): string[] {
  const status = create(StatusSchema, {
    code: failure.kind.grpcCode,
    message: failure.message,
    details: failureDetails(failure).map(({ desc, value }) => anyPack(desc, value)),
  });
  return [
    ...["grpc-status", String(failure.kind.grpcCode)],
    ...["grpc-message", percentEncode(failure.message)],
    ...["grpc-status-details-bin", Buffer.from(toBinary(StatusSchema, status)).toString("base64").replace(/=+$/, "")],
    ...["x-request-id", requestId],
  ];
}

/**
 * Encodes a message for a gRPC header: printable ASCII except the percent sign as is, other characters as
 * percent-encoded UTF-8.
 */
function percentEncode(text: string): string {
  return text.replace(/[^ -$&-~]+/g, (part) => encodeURIComponent(Buffer.from(part).toString()));
}
