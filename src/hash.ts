/** Hashes as the network writes them: 0x and 64 lower-case hex digits. */
import { createHash } from "node:crypto";
import { Failure } from "./errors.js";

const form = /^0x[0-9a-fA-F]{64}$/;

/** SHA-256 of bytes, or of a text in UTF-8. */
export function sha256(content: Uint8Array | string): string {
  return `0x${createHash("sha256").update(content).digest("hex")}`;
}

/**
 * A hash as callers write it, in the one form that is stored: 0x and 64 lower-case hex digits.
 *
 * @param name what the hash is, to start the error's sentence.
 * @param text 0x and 64 hex digits in either case.
 * @throws Failure INVALID_REQUEST
 */
export function normalizeHash(name: string, text: string): string {
  if (!form.test(text)) {
    throw new Failure("INVALID_REQUEST", `${name} is 0x and 64 hex digits.`);
  }
  return text.toLowerCase();
}
