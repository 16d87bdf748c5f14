/**
 * The order of what a sender handed in at one node, whichever ways it takes from there: a transaction that is relayed
 * comes with the nonce of the one before it, and waits for that one, for a while. Who relays says so, not the sender; so
 * it delays nothing for longer than that, and who says less is believed.
 */
import { createLruCache } from "../../base/caches/lru-cache.js";
import { byNonce } from "./fair-queue.js";
import type { PendingEntry } from "../blocks/store.js";

/** How long a transaction waits for the one before it, from when it came. */
export const waitsForEarlierMs = 30_000;
/** Senders of whom the newest nonce in a block is remembered. */
const maxSenders = 20_000;

/** A pending transaction; what it comes after is forgotten once that one is in a block or never will be. */
export interface Ordered extends Pick<PendingEntry, "hash" | "sender" | "nonce"> {
  /** When it came, on a clock that does not jump. */
  readonly arrivedMs: number;
  afterNonce: bigint | undefined;
}

/** What is known of the order of senders. */
export interface SenderOrder<E extends Ordered> {
  add(entry: E): void;
  /** One has left: into a block, or never into one. */
  remove(entry: E, isIncluded: boolean): void;
  /** Somebody says that it comes after this one at the latest, or after none. */
  loosen(entry: E, afterNonce: bigint | undefined): void;
  /** Hashes of those that wait for an earlier one that is not here yet, and of what comes after them. */
  findEarly(waiting: Iterable<E>, monotonicMs: number): Set<string>;
}

export function createSenderOrder<E extends Ordered>(): SenderOrder<E> {
  /** Those that come after one, by sender. */
  const following = new Map<string, Set<E>>();
  const lastIncluded = createLruCache<{ nonce: bigint }>(maxSenders);

  function forget(entry: E): void {
    const entries = following.get(entry.sender);
    entries?.delete(entry);
    if (entries?.size === 0) {
      following.delete(entry.sender);
    }
  }

  function follow(entry: E, afterNonce: bigint | undefined): void {
    const last = lastIncluded.get(entry.sender)?.nonce;
    entry.afterNonce = unlessIncluded(afterNonce, last);
    if (entry.afterNonce === undefined) {
      forget(entry);
    } else {
      const entries = following.get(entry.sender) ?? new Set();
      following.set(entry.sender, entries.add(entry));
    }
  }

  return {
    add: (entry) => follow(entry, entry.afterNonce),

    remove(entry, isIncluded) {
      const { sender, nonce } = entry;
      forget(entry);
      const last = lastIncluded.get(sender)?.nonce;
      if (isIncluded && (last === undefined || nonce > last)) {
        lastIncluded.set(sender, { nonce });
      }
      for (const other of following.get(sender) ?? []) {
        follow(other, other.afterNonce === nonce ? undefined : other.afterNonce);
      }
    },

    loosen(entry, afterNonce) {
      if (entry.afterNonce !== undefined && (afterNonce === undefined || afterNonce < entry.afterNonce)) {
        follow(entry, afterNonce);
      }
    },

    findEarly(waiting, monotonicMs) {
      const early = new Set<string>();
      if (following.size === 0) {
        return early;
      }
      for (const entries of bySender(waiting, (sender) => following.has(sender)).values()) {
        const here = new Set(entries.map(({ nonce }) => nonce));
        const isEarly = ({ afterNonce, arrivedMs }: E): boolean =>
          afterNonce !== undefined && !here.has(afterNonce) && monotonicMs < arrivedMs + waitsForEarlierMs;
        const first = entries.findIndex(isEarly);
        entries.slice(first < 0 ? entries.length : first).forEach(({ hash }) => early.add(hash));
      }
      return early;
    },
  };
}

/** The nonce that a transaction comes after; undefined for one up to the sender's last nonce in a block. */
export function unlessIncluded(afterNonce: bigint | undefined, lastNonce: bigint | undefined): bigint | undefined {
  return afterNonce !== undefined && lastNonce !== undefined && afterNonce <= lastNonce ? undefined : afterNonce;
}

/** The nonce of the transaction before each of these: of what waits here, or what whoever relayed it said. */
export function findEarlier<E extends Ordered>(
  selected: readonly E[],
  waiting: Iterable<E>,
): ReadonlyMap<string, bigint | undefined> {
  const senders = new Set(selected.map(({ sender }) => sender));
  const before = new Map<string, bigint | undefined>();
  for (const entries of bySender(waiting, (sender) => senders.has(sender)).values()) {
    for (const [i, { hash, afterNonce }] of entries.entries()) {
      const here = entries[i - 1]?.nonce;
      before.set(hash, here === undefined || (afterNonce !== undefined && afterNonce > here) ? afterNonce : here);
    }
  }
  return before;
}

/** What some senders have waiting, by nonce. */
function bySender<E extends Ordered>(waiting: Iterable<E>, isAsked: (sender: string) => boolean): Map<string, E[]> {
  const found = new Map<string, E[]>();
  for (const entry of waiting) {
    if (isAsked(entry.sender)) {
      const entries = found.get(entry.sender);
      if (entries === undefined) {
        found.set(entry.sender, [entry]);
      } else {
        entries.push(entry);
      }
    }
  }
  for (const entries of found.values()) {
    entries.sort(byNonce);
  }
  return found;
}
