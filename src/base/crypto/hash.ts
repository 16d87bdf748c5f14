/** Hashes and keys as the network writes them: 0x and 64 lower-case hex digits. */
import { hash } from "node:crypto";

export { hex32 } from "./signing-payloads.js";

/** SHA-256 of bytes, or of a text in UTF-8. */
export function sha256(content: Uint8Array | string): string {
  return `0x${hash("sha256", content, "hex")}`;
}

/** 32 bytes as the network writes them. */
export function toHex32(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex")}`;
}

/** The bytes of 0x and 64 hex digits. */
export function fromHex32(text: string): Buffer {
  return Buffer.from(text.slice(2), "hex");
}

/**
 * The checksum of a stored row, over its key and everything that is served of it: the first half of SHA-256 as 32 hex
 * digits. It tells what was changed by accident; whoever changes it on purpose can make it anew.
 *
 * @param columns none holds a NUL.
 */
export function hashRow(...columns: readonly (string | number)[]): string {
  return hash("sha256", columns.join("\0"), "hex").slice(0, 32);
}
