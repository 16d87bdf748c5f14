import { Failure } from "../errors.js";

const form = /^0x[0-9a-fA-F]{64}$/;

/**
 * A commitment or nullifier hash in the one form that is stored: 0x and 64 lower-case hex digits.
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
