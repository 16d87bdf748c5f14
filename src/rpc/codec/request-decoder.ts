/** Reads requests from the protobuf wire format. */
import { type DescMessage, fromBinary } from "@bufbuild/protobuf";
import { RpcError } from "../errors.js";
import { protoNameOf, requestRules } from "./request-rules.js";

/**
 * Makes the decoder of what callers send.
 *
 * @returns bytes to message; it throws Failure INVALID_REQUEST when the bytes are malformed, or a field holds what the
 * contract does not allow.
 */
export function requestDecoder(desc: DescMessage): (bytes: Uint8Array) => object {
  const check = requestRules(desc);
  return (bytes) => {
    let message: object;
    try {
      // A node answers requests, and hands none on.
      message = fromBinary(desc, bytes, { readUnknownFields: false });
    } catch {
      throw new RpcError("INVALID_REQUEST", `The request is not a valid ${desc.typeName}.`);
    }
    check(message, protoNameOf);
    return message;
  };
}
