/** Error status of gRPC and gRPC-Web, sent in headers or trailers. */
import { create, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { StatusSchema } from "../../gen/google/rpc/status_pb.js";
import type { RpcError } from "./errors.js";
import { failureDetails } from "./failure-details.js";

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
export function percentEncode(text: string): string {
  return text.replace(/[^ -$&-~]+/g, (part) => encodeURIComponent(Buffer.from(part).toString()));
}
