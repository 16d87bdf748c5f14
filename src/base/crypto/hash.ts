/** Hashes and keys in the text form of the network: 0x and 64 lower-case hex digits. */
import { hash } from "node:crypto";

export { hex32 } from "./signing-payloads.js";

/** Returns the SHA-256 of bytes, or of a text in UTF-8, as 0x and 64 hex digits. */
export function sha256(content: Uint8Array | string): string {
  return `0x${hash("sha256", content, "hex")}`;
}

export function toHex32(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex")}`;
}

export function fromHex32(text: string): Buffer {
  return Buffer.from(text.slice(2), "hex");
}
