/** Long encodings of values that never change are made once, and every answer sends the same bytes. */
import { isImmutable } from "../../base/caches/immutable.js";
import type { HttpResponseBody } from "./exchange.js";

/** Shorter texts are sent faster as text, beside the headers. */
const longFromLength = 16 * 1024;

/** An encoder whose long texts of immutable messages become bytes that are kept as long as the message. */
export function shareBytes(encode: (message: object) => string): (message: object) => HttpResponseBody {
  const kept = new WeakMap<object, HttpResponseBody>();
  return (message) => {
    const known = kept.get(message);
    if (known !== undefined) {
      return known;
    }
    const text = encode(message);
    if (text.length < longFromLength || !isImmutable(message)) {
      return { body: text };
    }
    const shared = { body: Buffer.from(text), isShared: true };
    kept.set(message, shared);
    return shared;
  };
}

/** A body in the form in which it is sent again and again. */
export function toLastingBody({ body, isShared }: HttpResponseBody): HttpResponseBody {
  if (typeof body !== "string") {
    return { body, isShared: isShared === true || body !== undefined };
  }
  const bytes = Buffer.from(body);
  // A text that was joined from many is a tree of them, which every use would walk again: this one is in one piece.
  return bytes.length < longFromLength ? { body: bytes.toString() } : { body: bytes, isShared: true };
}
