/** What an rpc client is told of a failure beyond code and sentence: details of the standard google.rpc types. */
import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { ErrorInfoSchema, RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import type { RpcError } from "./errors.js";

/** Owner of the reasons, as ErrorInfo wants it. */
const domain = "gatehouse";

/** A message with its descriptor. */
export interface FailureDetail {
  readonly desc: DescMessage;
  readonly value: Message;
}

/** The catalogue's reason as an ErrorInfo, and a RetryInfo where trying again later makes sense. */
export function failureDetails(failure: RpcError): FailureDetail[] {
  const info = { desc: ErrorInfoSchema, value: create(ErrorInfoSchema, { reason: failure.reason, domain }) };
  if (failure.retryAfterS === undefined) {
    return [info];
  }
  const retryDelay = { seconds: BigInt(failure.retryAfterS) };
  return [info, { desc: RetryInfoSchema, value: create(RetryInfoSchema, { retryDelay }) }];
}
