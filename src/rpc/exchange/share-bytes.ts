/** Shared encodings: long encodings of immutable values are created once, and every response sends the same bytes. */
import { isImmutable } from "../../base/caches/immutable.js";
import type { HttpResponseBody } from "./exchange.js";

/** Minimum length of a shared text. Shorter texts are sent faster as strings, together with the headers. */
const minSharedLength = 16 * 1024;

/** Wraps an encoder so that long encodings of immutable messages are cached as bytes, as long as the message exists. */
export function shareBytes(encode: (message: object) => string): (message: object) => HttpResponseBody {
  const encodings = new WeakMap<object, HttpResponseBody>();
  return (message) => {
    const encoded = encodings.get(message);
    if (encoded !== undefined) {
      return encoded;
    }
    const text = encode(message);
    if (text.length < minSharedLength || !isImmutable(message)) {
      return { body: text };
    }
    const shared = { body: Buffer.from(text), isShared: true };
    encodings.set(message, shared);
    return shared;
  };
}

/** Converts a body to the form in which it is cached and sent repeatedly. */
export function toCacheableBody({ body, isShared }: HttpResponseBody): HttpResponseBody {
  if (typeof body !== "string") {
    return { body, isShared: isShared === true || body !== undefined };
  }
  const bytes = Buffer.from(body);
  // V8 stores a concatenated string as a tree, and flattens it on each use. This copy is flat.
  return bytes.length < minSharedLength ? { body: bytes.toString() } : { body: bytes, isShared: true };
}
