/** Addresses, as callers write them. */
import { Failure } from "../rpc/errors.js";
import { isAddress, noAddress } from "./refusals.js";

/**
 * Checks the address of a program: `stor-` and 40 lower-case hex digits.
 *
 * @throws Failure INVALID_REQUEST
 */
export function checkAddress(address: string): string {
  if (!isAddress(address)) {
    throw new Failure(...noAddress);
  }
  return address;
}
