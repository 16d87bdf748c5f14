/** Decoding of requests from the protobuf wire format. */
import { type DescMessage, fromBinary } from "@bufbuild/protobuf";
import { RpcError } from "../errors.js";
import { protoNameOf, requestValidator } from "./request-rules.js";

/**
 * Creates the decoder of a request message.
 *
 * @returns a function from bytes to the message. It throws RpcError INVALID_REQUEST if the bytes are malformed, or if a
 * field violates the contract.
 */
export function requestDecoder(desc: DescMessage): (bytes: Uint8Array) => object {
  const check = requestValidator(desc);
  return (bytes) => {
    let message: object;
    try {
      // The node does not forward requests, so it needs no unknown fields.
      message = fromBinary(desc, bytes, { readUnknownFields: false });
    } catch {
      throw new RpcError("INVALID_REQUEST", `The request is not a valid ${desc.typeName}.`);
    }
    check(message, protoNameOf);
    return message;
  };
}
