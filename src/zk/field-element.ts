import { hex32 } from "../base/crypto/hash.js";
import { RpcError } from "../rpc/errors.js";
import { fieldOrder } from "./poseidon.js";

/**
 * Parses an element of BN254's scalar field.
 *
 * @param name subject of the error message, such as "A commitment".
 * @throws RpcError INVALID_REQUEST
 */
export function parseFieldElement(name: string, text: string): bigint {
  if (!hex32.test(text)) {
    throw new RpcError("INVALID_REQUEST", `${name} must be 0x and 64 lower-case hex digits.`);
  }
  const element = BigInt(text);
  if (element >= fieldOrder) {
    throw new RpcError("INVALID_REQUEST", `${name} must be below the order of BN254's scalar field.`);
  }
  return element;
}
