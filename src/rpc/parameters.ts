/** Forms of parameters that several services read. */
import { hex32 } from "../base/hash.js";
import { Failure } from "./errors.js";

/**
 * A hash as callers write it, in the one form that is stored: 0x and 64 lower-case hex digits.
 *
 * @param name what the hash is, to start the error's sentence.
 * @param text 0x and 64 hex digits in either case.
 * @throws Failure INVALID_REQUEST
 */
export function normalizeHash(name: string, text: string): string {
  const hash = text.startsWith("0x") ? text.toLowerCase() : text;
  if (!hex32.test(hash)) {
    throw new Failure("INVALID_REQUEST", `${name} is 0x and 64 hex digits.`);
  }
  return hash;
}

const bareForm = /^(?:0x)?([0-9a-fA-F]{64})$/;

/**
 * The same, of what callers may write without 0x, too: hashes of blocks and transactions, public keys.
 *
 * @param beginning of the error's sentence: `A block's hash is`.
 * @throws Failure INVALID_REQUEST
 */
export function normalizeBareHex(beginning: string, text: string): string {
  const digits = bareForm.exec(text)?.[1];
  if (digits === undefined) {
    throw new Failure("INVALID_REQUEST", `${beginning} 64 hex digits, with or without 0x.`);
  }
  return `0x${digits.toLowerCase()}`;
}
