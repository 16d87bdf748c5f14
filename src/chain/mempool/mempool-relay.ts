/** What of the mempool is relayed next: in fair order, and what was refused for the moment not at once again. */
import type { Bounds } from "./fair-queue.js";
import type { IndexEntry, MempoolIndex } from "./mempool-index.js";
import type { SenderArrivals } from "./sender-arrivals.js";
import { findEarlier } from "./sender-order.js";
import type { PendingTransaction, RelayedTransaction, RelayTarget } from "../blocks/store.js";

export interface RelayQueueDeps {
  readonly index: Pick<MempoolIndex, "entries" | "get" | "select">;
  readonly arrivals: Pick<SenderArrivals, "earliest">;
  readonly read: (entries: readonly IndexEntry[]) => Promise<PendingTransaction[]>;
  /** A clock that does not jump; that of all times here. */
  readonly monotonicMs: () => number;
}

export interface RelayQueue {
  /** Those whose turn is next to be relayed to such a node, of those that were not since then. */
  toRelay(to: RelayTarget, relayedBeforeMs: number, bounds: Bounds): Promise<readonly RelayedTransaction[]>;
  /** Remembers that transactions were relayed. */
  markRelayed(to: RelayTarget, hashes: readonly string[], relayedMs: number): void;
  /** Lets transactions wait before they are relayed again, longer each time, and what their senders sent after them. */
  defer(to: RelayTarget, hashes: readonly string[]): void;
}

/** How long one waits that was refused for the moment where it was relayed to, and how often that doubles. */
const deferredMs = 1_000;
const maxDoublings = 4;

export function createRelayQueue({ index, arrivals, read, monotonicMs }: RelayQueueDeps): RelayQueue {
  const forEach = (hashes: readonly string[], change: (entry: IndexEntry) => void): void =>
    hashes.flatMap((hash) => index.get(hash) ?? []).forEach(change);

  return {
    async toRelay(to, relayedBeforeMs, bounds) {
      const now = monotonicMs();
      const heldFrom = arrivals.earliest();
      for (const { sender, nonce, deferredUntilMs } of index.entries()) {
        const from = heldFrom.get(sender);
        if (deferredUntilMs[to] > now && (from === undefined || nonce < from)) {
          heldFrom.set(sender, nonce);
        }
      }
      const isWanted = ({ sender, nonce, relayedMs }: IndexEntry): boolean => {
        const from = heldFrom.get(sender);
        return relayedMs[to] < relayedBeforeMs && (from === undefined || nonce < from);
      };
      const selected = index.select(bounds, isWanted);
      const earlier = findEarlier(selected, index.entries());
      return (await read(selected)).map((one) => ({ ...one, afterNonce: earlier.get(one.hash) }));
    },

    markRelayed(to, hashes, relayedMs) {
      forEach(hashes, (entry) => (entry.relayedMs[to] = relayedMs));
    },

    defer(to, hashes) {
      forEach(hashes, (entry) => {
        entry.deferredUntilMs[to] = monotonicMs() + deferredMs * 2 ** entry.refusals;
        entry.refusals = Math.min(entry.refusals + 1, maxDoublings);
      });
    },
  };
}
