import { isUtf8 } from "node:buffer";

/** Decodes UTF-8; undefined for other bytes, which the runtime would replace by U+FFFD: another text. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  return isUtf8(bytes) ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8") : undefined;
}
