/** Decoding of base64, strictly: the runtime skips characters that are no base64, and stops at padding. */

/**
 * Decodes the standard or the URL-safe alphabet (RFC 4648), with or without padding.
 *
 * @returns undefined for other characters, incomplete padding, and bits after the last byte. No two texts of one
 * alphabet and padding have the same bytes.
 */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const digits = text.length - padding;
  // The runtime reads only the lower byte of other characters.
  const isAscii = Buffer.byteLength(text) === text.length;
  if (!isAscii || digits % 4 === 1 || (padding > 0 && text.length % 4 > 0)) {
    return undefined;
  }
  const { buffer, byteOffset, length } = Buffer.from(text, "base64");
  const bytes = new Uint8Array(buffer as ArrayBuffer, byteOffset, length);
  return length === Math.floor((digits * 3) / 4) && hasNoLooseBits(bytes, text[digits - 1]) ? bytes : undefined;
}

/** Returns true if the last digit has no bits after the last byte. */
function hasNoLooseBits(bytes: Uint8Array, lastDigit: string | undefined): boolean {
  const rest = bytes.length % 3;
  if (rest === 0) {
    return true;
  }
  const lastDigits = Buffer.from(bytes.subarray(-rest)).toString("base64url");
  return lastDigits.at(-1) === lastDigit?.replace("+", "-").replace("/", "_");
}
