/** Error details for rpc clients beyond code and message, in the standard google.rpc types. */
import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { ErrorInfoSchema, RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import type { RpcError } from "./errors.js";

/** Domain of the reasons in ErrorInfo. */
const domain = "gatehouse";

/** Message with its descriptor. */
export interface FailureDetail {
  readonly desc: DescMessage;
  readonly value: Message;
}

/** Returns an ErrorInfo with the reason, and a RetryInfo if a retry makes sense later. */
export function failureDetails(failure: RpcError): FailureDetail[] {
  const info = { desc: ErrorInfoSchema, value: create(ErrorInfoSchema, { reason: failure.reason, domain }) };
  if (failure.retryAfterS === undefined) {
    return [info];
  }
  const retryDelay = { seconds: BigInt(failure.retryAfterS) };
  return [info, { desc: RetryInfoSchema, value: create(RetryInfoSchema, { retryDelay }) }];
}
