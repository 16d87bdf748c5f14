/**
 * Selection of pending transactions to relay, in fair order. Transactions that were rejected temporarily are deferred.
 */
import type { SelectionLimits } from "./fair-queue.js";
import type { IndexEntry, MempoolIndex } from "./mempool-index.js";
import type { SenderArrivals } from "./sender-arrivals.js";
import { findPredecessors } from "./sender-order.js";
import type { PendingTransaction, RelayedTransaction, RelayTarget } from "../blocks/store.js";

export interface RelayQueueDeps {
  readonly index: Pick<MempoolIndex, "entries" | "get" | "select">;
  readonly arrivals: Pick<SenderArrivals, "earliest">;
  /** Reads the bytes of transactions; omits those that left the mempool meanwhile. */
  readonly read: (entries: readonly IndexEntry[]) => Promise<PendingTransaction[]>;
  /** Monotonic clock of all times in this file. */
  readonly monotonicMs: () => number;
}

export interface RelayQueue {
  /** Returns the next transactions to relay to a kind of node. Skips those relayed to it since `relayedBeforeMs`. */
  toRelay(to: RelayTarget, relayedBeforeMs: number, limits: SelectionLimits): Promise<readonly RelayedTransaction[]>;
  /** Records that transactions were relayed. */
  markRelayed(to: RelayTarget, hashes: readonly string[], relayedMs: number): void;
  /** Defers transactions, and later ones of the same senders, with exponential backoff. */
  defer(to: RelayTarget, hashes: readonly string[]): void;
}

/** Delay after the first temporary rejection by the target node; doubles up to four times, to 16 s. */
const firstDelayMs = 1_000;
const maxDoublings = 4;

export function createRelayQueue({ index, arrivals, read, monotonicMs }: RelayQueueDeps): RelayQueue {
  const forEachEntry = (hashes: readonly string[], change: (entry: IndexEntry) => void): void =>
    hashes.flatMap((hash) => index.get(hash) ?? []).forEach(change);

  return {
    async toRelay(to, relayedBeforeMs, limits) {
      const now = monotonicMs();
      const deferredFrom = arrivals.earliest();
      for (const { sender, nonce, deferredUntilMs } of index.entries()) {
        const from = deferredFrom.get(sender);
        if (deferredUntilMs[to] > now && (from === undefined || nonce < from)) {
          deferredFrom.set(sender, nonce);
        }
      }
      const isEligible = ({ sender, nonce, relayedMs }: IndexEntry): boolean => {
        const from = deferredFrom.get(sender);
        return relayedMs[to] < relayedBeforeMs && (from === undefined || nonce < from);
      };
      const selected = index.select(limits, isEligible);
      const predecessors = findPredecessors(selected, index.entries());
      return (await read(selected)).map((one) => ({ ...one, afterNonce: predecessors.get(one.hash) }));
    },

    markRelayed(to, hashes, relayedMs) {
      forEachEntry(hashes, (entry) => (entry.relayedMs[to] = relayedMs));
    },

    defer(to, hashes) {
      forEachEntry(hashes, (entry) => {
        entry.deferredUntilMs[to] = monotonicMs() + firstDelayMs * 2 ** entry.refusals;
        entry.refusals = Math.min(entry.refusals + 1, maxDoublings);
      });
    },
  };
}
