/** Conversion between bytes and text. */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, hexToBytes, utf8ToBytes } from "@noble/hashes/utils.js";

export { bytesToHex, hexToBytes, utf8ToBytes };

/** Returns the SHA-256 of bytes, or of a text in UTF-8: 64 lower-case hex digits. */
export function sha256Hex(content: Uint8Array | string): string {
  return bytesToHex(sha256(typeof content === "string" ? utf8ToBytes(content) : content));
}

/**
 * Decodes base64 (RFC 4648) of the standard or the URL-safe alphabet, with padding or without.
 *
 * @returns undefined for other characters, white space, incomplete padding, and bits after the last byte.
 */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  const standard = text.replaceAll("-", "+").replaceAll("_", "/");
  let binary: string;
  try {
    binary = atob(standard);
  } catch {
    return undefined;
  }
  // `atob` skips white space, and drops bits after the last byte.
  const encoded = btoa(binary);
  return standard === encoded || standard === encoded.replace(/=+$/, "")
    ? Uint8Array.from(binary, (character) => character.charCodeAt(0))
    : undefined;
}

/**
 * Returns 32 bytes, from bytes or from 64 hex digits, 0x optional.
 *
 * @param what name of the value, which starts the error message.
 * @throws TypeError if the value is not 32 bytes.
 */
export function toBytes32(value: Uint8Array | string, name: string): Uint8Array {
  if (typeof value === "string" && /^(0x)?[0-9a-f]{64}$/i.test(value)) {
    return hexToBytes(value.replace(/^0x/i, ""));
  }
  if (value instanceof Uint8Array && value.length === 32) {
    return value;
  }
  throw new TypeError(`${name} must be 32 bytes, or 64 hex digits.`);
}
