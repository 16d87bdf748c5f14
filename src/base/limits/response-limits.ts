/**
 * Size limit of a response in every protocol, and lists that are cut to fit. Single values have limits where they are
 * created: the size of a program by its transaction, the size of a block by a rule of the chain.
 */
import { isImmutable } from "../caches/immutable.js";

/** Limit in bytes on a response that can be split. It is the default receive limit of gRPC clients. */
export const maxResponseBytes = 4 * 1024 * 1024;

/** Generous allowance in bytes for the message around the items of a list. */
const envelopeBytes = 64 * 1024;
export const maxListBytes = maxResponseBytes - envelopeBytes;

/**
 * Allowance in bytes for what the JSON of a message has in addition to JSON.stringify: names of enums, nulls for unset
 * fields.
 */
const itemEnvelopeBytes = 256;

/** Returns an upper estimate of the size of an encoded message in bytes. Measures JSON, the longest encoding. */
export function estimateBytes(message: object): number {
  const text = JSON.stringify(message, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
  return Buffer.byteLength(text) + itemEnvelopeBytes;
}

/**
 * Creates a function that returns as many items of a list, from an offset on, as fit into one response. It always
 * returns the next item. A list that fits is returned itself, so that the encoding of an immutable list can be cached.
 * The returned `nextOffset` is undefined for the last part.
 */
export function createListCutter<Item extends object>() {
  const sizes = new WeakMap<Item, number>();

  function sizeOf(item: Item): number {
    const sizeBytes = sizes.get(item) ?? estimateBytes(item);
    if (isImmutable(item)) {
      sizes.set(item, sizeBytes);
    }
    return sizeBytes;
  }

  return (list: readonly Item[], offset = 0): { items: readonly Item[]; nextOffset: number | undefined } => {
    let bytes = 0;
    for (let end = offset; end < list.length; end++) {
      bytes += sizeOf(list[end]!);
      if (bytes > maxListBytes && end > offset) {
        return { items: list.slice(offset, end), nextOffset: end };
      }
    }
    return { items: offset === 0 ? list : list.slice(offset), nextOffset: undefined };
  };
}
