/** Addresses and owners, as callers write them. */
import { Failure } from "../rpc/errors.js";

const addressForm = /^stor-[0-9a-f]{40}$/;
const keyForm = /^(?:0x)?([0-9a-fA-F]{64})$/;

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

/**
 * The public key that names an owner, in the one form that is stored: 0x and 64 lower-case hex digits.
 *
 * @param owner 64 hex digits in either case, 0x optional.
 * @throws Failure INVALID_REQUEST
 */
export function normalizeOwner(owner: string): string {
  const digits = keyForm.exec(owner)?.[1];
  if (digits === undefined) {
    throw new Failure("INVALID_REQUEST", "An owner is an Ed25519 public key: 64 hex digits, with or without 0x.");
  }
  return `0x${digits.toLowerCase()}`;
}
