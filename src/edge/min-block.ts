import { readInteger } from "../base/text/integers.js";
import { RpcError } from "../rpc/errors.js";
import type { Arrival } from "../rpc/gate.js";

/**
 * Returns the block that the caller requires the state to include; undefined if none. The caller may have seen that
 * block on another node that is ahead of this one.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function minBlockOf(arrival: Arrival): bigint | undefined {
  const value = arrival.header("gatehouse-min-block");
  if (value === undefined) {
    return undefined;
  }
  const number = readInteger(value);
  if (number === undefined || number < 0n || number > Number.MAX_SAFE_INTEGER) {
    throw new RpcError("INVALID_REQUEST", "Gatehouse-Min-Block must be the number of a block.");
  }
  return number;
}
