/** Hashes and keys as the network writes them: 0x and 64 lower-case hex digits. */
import { createHash } from "node:crypto";

/** Form of 32 bytes in text: a hash, or a public key. */
export const hex32 = /^0x[0-9a-f]{64}$/;

/** SHA-256 of bytes, or of a text in UTF-8. */
export function sha256(content: Uint8Array | string): string {
  return `0x${createHash("sha256").update(content).digest("hex")}`;
}
