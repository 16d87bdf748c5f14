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
