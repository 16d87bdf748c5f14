/**
 * How much one answer may weigh, whatever the protocol, and lists that end before they weigh more. What a single value
 * weighs is bounded where it is made: a program by its transaction, a block by the rule of the chain.
 */
import { isImmutable, makeImmutable } from "../caches/immutable.js";

/** Most bytes of an answer that could have been shorter: what clients of gRPC take when nobody tells them otherwise. */
export const maxResponseBytes = 4 * 1024 * 1024;

/** What stands around the items of a list, roomily. */
const envelopeBytes = 64 * 1024;
/** Most bytes of the items of a list. */
export const maxListBytes = maxResponseBytes - envelopeBytes;

/** What the JSON of a message has beside what JSON.stringify gives: words for enums, nulls for what is unset. */
const itemEnvelopeBytes = 256;

/** At most so many bytes is a message in an answer: its JSON, which is longer than any other form. */
export function estimateBytes(message: object): number {
  const text = JSON.stringify(message, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
  return Buffer.byteLength(text) + itemEnvelopeBytes;
}

/** A part of a list. */
export interface ListPart<Item> {
  readonly items: readonly Item[];
  /** Where the next part begins; undefined when there is none. */
  readonly nextOffset: number | undefined;
}

/**
 * Builds the function that gives as many items of a list, from an offset on, as one answer holds. A list that fits is
 * given as it is, so that one which is immutable is also encoded once.
 */
export function createListCutter<Item extends object>(): (list: readonly Item[], offset?: number) => ListPart<Item> {
  const weights = new WeakMap<Item, number>();
  const firstParts = new WeakMap<readonly Item[], ListPart<Item>>();

  function weightOf(item: Item): number {
    const known = weights.get(item);
    if (known !== undefined) {
      return known;
    }
    const weight = estimateBytes(item);
    if (isImmutable(item)) {
      weights.set(item, weight);
    }
    return weight;
  }

  function cut(list: readonly Item[], offset: number): ListPart<Item> {
    let bytes = 0;
    let end = offset;
    while (end < list.length) {
      bytes += weightOf(list[end]!);
      if (bytes > maxListBytes && end > offset) {
        return { items: list.slice(offset, end), nextOffset: end };
      }
      end++;
    }
    return { items: offset === 0 ? list : list.slice(offset), nextOffset: undefined };
  }

  return (list, offset = 0) => {
    if (offset > 0 || !isImmutable(list)) {
      return cut(list, offset);
    }
    let part = firstParts.get(list);
    if (part === undefined) {
      const { items, nextOffset } = cut(list, 0);
      part = { items: makeImmutable(items), nextOffset };
      firstParts.set(list, part);
    }
    return part;
  };
}
