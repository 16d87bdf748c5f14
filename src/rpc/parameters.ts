/** Forms of parameters that several services read. */
import { noBareHash, noHash, toBareHash, toHash } from "../base/hex-forms.js";
import { Failure } from "./errors.js";

/**
 * A hash as callers write it, in the one form that is stored: 0x and 64 lower-case hex digits.
 *
 * @param name what the hash is, to start the error's sentence.
 * @param text 0x and 64 hex digits in either case.
 * @throws Failure INVALID_REQUEST
 */
export function normalizeHash(name: string, text: string): string {
  const hash = toHash(text);
  if (hash === undefined) {
    throw new Failure("INVALID_REQUEST", noHash(name));
  }
  return hash;
}

/**
 * The same, of what callers may write without 0x, too: hashes of blocks and transactions, public keys.
 *
 * @param beginning of the error's sentence: `A block's hash is`.
 * @throws Failure INVALID_REQUEST
 */
export function normalizeBareHex(beginning: string, text: string): string {
  const hash = toBareHash(text);
  if (hash === undefined) {
    throw new Failure("INVALID_REQUEST", noBareHash(beginning));
  }
  return hash;
}
