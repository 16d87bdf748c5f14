/** Long encodings of values that never change are made once, and every answer sends the same bytes. */
import { isImmutable } from "../../base/immutable.js";

/** Bytes that many answers share; nobody writes to them. */
export interface SharedBytes {
  readonly bytes: Buffer;
}

/** Shorter texts are sent faster as text, beside the headers. */
const longFromLength = 16 * 1024;

/** An encoder whose long texts of immutable messages become bytes that are kept as long as the message. */
export function shareBytes(encode: (message: object) => string): (message: object) => string | SharedBytes {
  const kept = new WeakMap<object, SharedBytes>();
  return (message) => {
    const known = kept.get(message);
    if (known !== undefined) {
      return known;
    }
    const text = encode(message);
    if (text.length < longFromLength || !isImmutable(message)) {
      return text;
    }
    const shared = { bytes: Buffer.from(text) };
    kept.set(message, shared);
    return shared;
  };
}
