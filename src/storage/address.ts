/** Addresses, as callers write them. */
import { Failure } from "../rpc/errors.js";

const addressForm = /^stor-[0-9a-f]{40}$/;

/**
 * Checks the address of a program: `stor-` and 40 lower-case hex digits.
 *
 * @throws Failure INVALID_REQUEST
 */
export function checkAddress(address: string): string {
  if (!addressForm.test(address)) {
    throw new Failure("INVALID_REQUEST", "A storage address is stor- and 40 lower-case hex digits.");
  }
  return address;
}
