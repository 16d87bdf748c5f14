/** Parsing of hashes and keys in the forms that callers use. Runs without Node.js, so browsers can load it. */
import { hex32 } from "./signing-payloads.js";

/**
 * Returns the stored form of a hash: 0x and 64 lower-case hex digits. Accepts either case; returns undefined if the
 * text is not a hash.
 */
export function toHash(text: string): string | undefined {
  const hash = text.startsWith("0x") ? text.toLowerCase() : text;
  return hex32.test(hash) ? hash : undefined;
}

const bareForm = /^(?:0x)?([0-9a-fA-F]{64})$/;

/** Returns the stored form of a hash of a block or transaction, or of a public key. Here 0x is optional. */
export function toBareHash(text: string): string | undefined {
  const digits = bareForm.exec(text)?.[1];
  return digits === undefined ? undefined : `0x${digits.toLowerCase()}`;
}

const keyForm = /^(?:ed25519:)?(.*)$/s;

/** Returns the stored form of a public key. Both 0x and the prefix `ed25519:` are optional. */
export function toPublicKey(text: string): string | undefined {
  return toBareHash(keyForm.exec(text)![1]!);
}
