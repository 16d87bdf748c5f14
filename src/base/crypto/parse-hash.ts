/** Hashes and keys as callers write them, and the sentences for what is none. Nothing here needs Node.js. */
import { hex32 } from "./signing-payloads.js";

/** The one form that is stored, of 0x and 64 hex digits in either case; undefined for anything else. */
export function toHash(text: string): string | undefined {
  const hash = text.startsWith("0x") ? text.toLowerCase() : text;
  return hex32.test(hash) ? hash : undefined;
}

const bareForm = /^(?:0x)?([0-9a-fA-F]{64})$/;

/** The same, of what may be written without 0x, too: hashes of blocks and transactions, public keys. */
export function toBareHash(text: string): string | undefined {
  const digits = bareForm.exec(text)?.[1];
  return digits === undefined ? undefined : `0x${digits.toLowerCase()}`;
}

const keyForm = /^(?:ed25519:)?(.*)$/s;

/** A public key as an identity has it, in the same form: what may be written without 0x, and after `ed25519:`. */
export function toPublicKey(text: string): string | undefined {
  return toBareHash(keyForm.exec(text)![1]!);
}
