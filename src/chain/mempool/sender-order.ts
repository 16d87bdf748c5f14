/**
 * Submission order of each sender's transactions, preserved across relays. A relayed transaction carries the nonce of
 * its predecessor and waits for that predecessor for a limited time. The relaying peer states the predecessor, not the
 * sender. The wait is therefore limited, and the lowest stated nonce wins.
 */
import { createLruCache } from "../../base/caches/lru-cache.js";
import { byNonce, getOrCreate } from "./fair-queue.js";
import type { PendingEntry } from "../blocks/store.js";

/** Limit in milliseconds on the time that a transaction waits for its predecessor, from its arrival on. */
export const maxPredecessorWaitMs = 30_000;
/** Limit on senders whose last included nonce is cached. */
const maxSenders = 20_000;

/** Pending transaction. */
export interface Ordered extends Pick<PendingEntry, "hash" | "sender" | "nonce"> {
  /** Monotonic time of arrival. */
  readonly arrivedMs: number;
  /** Nonce of the predecessor; undefined if there is none, or once the predecessor is in a block or can never be. */
  afterNonce: bigint | undefined;
}

/** Tracker of the order of each sender's transactions. */
export interface SenderOrder<E extends Ordered> {
  add(entry: E): void;
  /** Records that a transaction left the mempool. `isIncluded` is true if it entered a block. */
  remove(entry: E, isIncluded: boolean): void;
  /** Lowers the nonce that a transaction waits for; `undefined` ends the wait. */
  lowerAfterNonce(entry: E, afterNonce: bigint | undefined): void;
  /**
   * Returns the hashes of the pending transactions that wait for a missing predecessor, and of all later ones of the
   * same senders.
   */
  findWaiting(pending: Iterable<E>, monotonicMs: number): Set<string>;
}

export function createSenderOrder<E extends Ordered>(): SenderOrder<E> {
  /** Transactions with a predecessor, by sender. */
  const withPredecessor = new Map<string, Set<E>>();
  const lastIncluded = createLruCache<{ nonce: bigint }>(maxSenders);

  function unlink(entry: E): void {
    const entries = withPredecessor.get(entry.sender);
    entries?.delete(entry);
    if (entries?.size === 0) {
      withPredecessor.delete(entry.sender);
    }
  }

  function setPredecessor(entry: E, afterNonce: bigint | undefined): void {
    const last = lastIncluded.get(entry.sender)?.nonce;
    entry.afterNonce = unlessIncluded(afterNonce, last);
    if (entry.afterNonce === undefined) {
      unlink(entry);
    } else {
      const entries = withPredecessor.get(entry.sender) ?? new Set();
      withPredecessor.set(entry.sender, entries.add(entry));
    }
  }

  return {
    add: (entry) => setPredecessor(entry, entry.afterNonce),

    remove(entry, isIncluded) {
      const { sender, nonce } = entry;
      unlink(entry);
      const last = lastIncluded.get(sender)?.nonce;
      if (isIncluded && (last === undefined || nonce > last)) {
        lastIncluded.set(sender, { nonce });
      }
      for (const other of withPredecessor.get(sender) ?? []) {
        setPredecessor(other, other.afterNonce === nonce ? undefined : other.afterNonce);
      }
    },

    lowerAfterNonce(entry, afterNonce) {
      if (entry.afterNonce !== undefined && (afterNonce === undefined || afterNonce < entry.afterNonce)) {
        setPredecessor(entry, afterNonce);
      }
    },

    findWaiting(pending, monotonicMs) {
      const waiting = new Set<string>();
      if (withPredecessor.size === 0) {
        return waiting;
      }
      for (const entries of bySender(pending, (sender) => withPredecessor.has(sender)).values()) {
        const nonces = new Set(entries.map(({ nonce }) => nonce));
        const isWaiting = ({ afterNonce, arrivedMs }: E): boolean =>
          afterNonce !== undefined && !nonces.has(afterNonce) && monotonicMs < arrivedMs + maxPredecessorWaitMs;
        const first = entries.findIndex(isWaiting);
        entries.slice(first < 0 ? entries.length : first).forEach(({ hash }) => waiting.add(hash));
      }
      return waiting;
    },
  };
}

/**
 * Returns the predecessor's nonce. Returns undefined if the predecessor needs no wait: the sender's last nonce in a
 * block is that one or a higher one.
 */
export function unlessIncluded(afterNonce: bigint | undefined, lastNonce: bigint | undefined): bigint | undefined {
  return afterNonce !== undefined && lastNonce !== undefined && afterNonce <= lastNonce ? undefined : afterNonce;
}

/**
 * Returns the predecessor's nonce of each selected transaction: the larger one of the pending predecessor and the one
 * stated by the relaying peer.
 */
export function findPredecessors<E extends Ordered>(
  selected: readonly E[],
  pending: Iterable<E>,
): ReadonlyMap<string, bigint | undefined> {
  const senders = new Set(selected.map(({ sender }) => sender));
  const predecessors = new Map<string, bigint | undefined>();
  for (const entries of bySender(pending, (sender) => senders.has(sender)).values()) {
    for (const [i, { hash, afterNonce }] of entries.entries()) {
      const previous = entries[i - 1]?.nonce;
      const prefersStated = previous === undefined || (afterNonce !== undefined && afterNonce > previous);
      predecessors.set(hash, prefersStated ? afterNonce : previous);
    }
  }
  return predecessors;
}

/** Groups the pending transactions of the requested senders, sorted by nonce. */
function bySender<E extends Ordered>(pending: Iterable<E>, isRequested: (sender: string) => boolean): Map<string, E[]> {
  const groups = new Map<string, E[]>();
  for (const entry of pending) {
    if (isRequested(entry.sender)) {
      getOrCreate(groups, entry.sender, () => []).push(entry);
    }
  }
  for (const entries of groups.values()) {
    entries.sort(byNonce);
  }
  return groups;
}
