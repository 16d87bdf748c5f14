/**
 * Submission order of each sender's transactions, preserved across relays. A relayed transaction carries the nonce of
 * its predecessor and waits for that predecessor for a limited time. The relaying peer states the predecessor, not the
 * sender. The wait is therefore limited, and the lowest stated nonce wins.
 */
import { createLruCache } from "../../base/caches/lru-cache.js";
import { byNonce } from "./fair-queue.js";
import type { PendingEntry } from "../blocks/store.js";

/** Time that a transaction waits for its predecessor, counted from its arrival. */
export const waitsForEarlierMs = 30_000;
/** Limit on senders whose last included nonce is cached. */
const maxSenders = 20_000;

/** Pending transaction. Its `afterNonce` is cleared once the predecessor is in a block or can never be. */
export interface Ordered extends Pick<PendingEntry, "hash" | "sender" | "nonce"> {
  /** Monotonic time of arrival. */
  readonly arrivedMs: number;
  afterNonce: bigint | undefined;
}

/** Tracker of the order of each sender's transactions. */
export interface SenderOrder<E extends Ordered> {
  add(entry: E): void;
  /** Records that a transaction left the mempool: included in a block, or never to be included. */
  remove(entry: E, isIncluded: boolean): void;
  /** Lowers the nonce that a transaction waits for; `undefined` ends the wait. */
  loosen(entry: E, afterNonce: bigint | undefined): void;
  /**
   * Returns hashes of the transactions that wait for a missing predecessor, and of all later ones of the same senders.
   */
  findEarly(waiting: Iterable<E>, monotonicMs: number): Set<string>;
}

export function createSenderOrder<E extends Ordered>(): SenderOrder<E> {
  /** Transactions that wait for a predecessor, by sender. */
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

/** Returns the nonce that a transaction waits for; undefined if the sender's last nonce in a block is not below it. */
export function unlessIncluded(afterNonce: bigint | undefined, lastNonce: bigint | undefined): bigint | undefined {
  return afterNonce !== undefined && lastNonce !== undefined && afterNonce <= lastNonce ? undefined : afterNonce;
}

/**
 * Returns the predecessor's nonce of each selected transaction: the larger one of the pending predecessor and the one
 * stated by the relaying peer.
 */
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

/** Groups the pending transactions of the requested senders, sorted by nonce. */
function bySender<E extends Ordered>(waiting: Iterable<E>, isRequested: (sender: string) => boolean): Map<string, E[]> {
  const found = new Map<string, E[]>();
  for (const entry of waiting) {
    if (isRequested(entry.sender)) {
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
