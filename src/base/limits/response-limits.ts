/**
 * Size limit of a response in every protocol, and lists that are cut to fit. Single values have limits where they are
 * created: the size of a program by its transaction, the size of a block by a rule of the chain.
 */
import { isImmutable, makeImmutable } from "../caches/immutable.js";

/** Limit in bytes on a response that can be split. It is the default receive limit of gRPC clients. */
export const maxResponseBytes = 4 * 1024 * 1024;

/** Generous allowance in bytes for the message around the items of a list. */
const envelopeBytes = 64 * 1024;
/** Limit in bytes on the items of a list. */
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

/** Part of a list that fits into one response. */
export interface ListPart<Item> {
  readonly items: readonly Item[];
  /** Offset of the next part; undefined if this is the last one. */
  readonly nextOffset: number | undefined;
}

/**
 * Creates a function that returns as many items of a list, from an offset on, as fit into one response. It always
 * returns the next item. A list that fits is returned itself, so that the encoding of an immutable list can be cached.
 */
export function createListCutter<Item extends object>(): (list: readonly Item[], offset?: number) => ListPart<Item> {
  const sizes = new WeakMap<Item, number>();
  const firstParts = new WeakMap<readonly Item[], ListPart<Item>>();

  function sizeOf(item: Item): number {
    const cachedBytes = sizes.get(item);
    if (cachedBytes !== undefined) {
      return cachedBytes;
    }
    const sizeBytes = estimateBytes(item);
    if (isImmutable(item)) {
      sizes.set(item, sizeBytes);
    }
    return sizeBytes;
  }

  function takePart(list: readonly Item[], offset: number): ListPart<Item> {
    let bytes = 0;
    let end = offset;
    while (end < list.length) {
      bytes += sizeOf(list[end]!);
      if (bytes > maxListBytes && end > offset) {
        return { items: list.slice(offset, end), nextOffset: end };
      }
      end++;
    }
    return { items: offset === 0 ? list : list.slice(offset), nextOffset: undefined };
  }

  return (list, offset = 0) => {
    if (offset > 0 || !isImmutable(list)) {
      return takePart(list, offset);
    }
    let part = firstParts.get(list);
    if (part === undefined) {
      const { items, nextOffset } = takePart(list, 0);
      part = { items: makeImmutable(items), nextOffset };
      firstParts.set(list, part);
    }
    return part;
  };
}
