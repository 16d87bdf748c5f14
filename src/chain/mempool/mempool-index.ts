/** In-memory index of pending transactions without their bytes: usage by source and sender, and the fair order. */
import { createVirtualTime, selectFair, type SelectionLimits, type QueuedTransaction } from "./fair-queue.js";
import { createSenderOrder, type Ordered } from "./sender-order.js";
import type { MempoolSize, PendingEntry, RelayTarget } from "../blocks/store.js";

/** Pending transaction in the index. */
export interface IndexEntry extends Omit<PendingEntry, "afterNonce">, Ordered, QueuedTransaction {
  /** Monotonic times of the last relay, to an authority and to another peer. */
  readonly relayedMs: Record<RelayTarget, number>;
  /** Monotonic times before which the transaction is not relayed again. */
  readonly deferredUntilMs: Record<RelayTarget, number>;
  /** Number of temporary rejections after relays, up to 4; sets the backoff. */
  refusals: number;
}

export interface MempoolIndex {
  /** Returns the total size, including reserved capacity. */
  size(): MempoolSize;
  /** Returns the usage of a source, including reserved capacity. */
  usageOfSource(source: string | undefined): MempoolSize;
  usageOfSender(sender: string): MempoolSize;
  /** Returns the largest count and the largest bytes of any source; each may belong to a different source. */
  largestSource(): MempoolSize;
  /** Reserves capacity for a transaction that is being stored. */
  reserve(entry: PendingEntry): void;
  /** Releases reserved capacity if the transaction could not be stored. */
  release(entry: PendingEntry): void;
  /** Adds a stored transaction, for which capacity was reserved. `arrivedMs` is a monotonic time. */
  add(entry: PendingEntry, arrivedMs: number): void;
  get(hash: string): IndexEntry | undefined;
  /** Removes a transaction, releases its capacity and returns it; undefined if the index does not contain it. */
  remove(hash: string, cause: RemovalCause): IndexEntry | undefined;
  /** Lowers the nonce that a transaction waits for; `undefined` ends the wait. */
  lowerAfterNonce(hash: string, afterNonce: bigint | undefined): void;
  /** Returns all transactions in order of arrival. */
  entries(): Iterable<IndexEntry>;
  /** Selects the next eligible transactions in fair order. */
  select(limits: SelectionLimits, isEligible: (entry: IndexEntry) => boolean): IndexEntry[];
  /**
   * Selects the next transactions in fair order. Skips those that wait for an earlier transaction of their sender.
   *
   * @param deferredFrom nonces by sender; transactions of that sender with this nonce or a higher one are skipped.
   */
  selectInOrder(limits: SelectionLimits, monotonicMs: number, deferredFrom: ReadonlyMap<string, bigint>): IndexEntry[];
  /** Returns false if the sender has no pending transaction with a higher nonce, true if it may have one. */
  hasLater(transaction: Pick<PendingEntry, "sender" | "nonce">): boolean;
}

/** Reason for which a transaction leaves the mempool. */
export type RemovalCause = "included" | "rejected" | "expired";

interface Usage {
  count: number;
  bytes: number;
}

const nothing: MempoolSize = { count: 0, bytes: 0 };
const neverRelayed: Readonly<Record<RelayTarget, number>> = { authority: -Infinity, peer: -Infinity };

/** Creates an empty index. */
export function createMempoolIndex(): MempoolIndex {
  const entries = new Map<string, IndexEntry>();
  const total: Usage = { count: 0, bytes: 0 };
  const sources = new Map<string | undefined, Usage>();
  const senders = new Map<string, Usage>();
  /** Highest nonce that each sender has had in the mempool, until none of its transactions is pending. */
  const highestNonces = new Map<string, bigint>();
  const virtualTime = createVirtualTime();
  const order = createSenderOrder<IndexEntry>();

  function count({ source, sender, sizeBytes }: PendingEntry, sign: 1 | -1): void {
    total.count += sign;
    total.bytes += sign * sizeBytes;
    change(sources, source, sign, sizeBytes);
    change(senders, sender, sign, sizeBytes);
    if (!senders.has(sender)) {
      highestNonces.delete(sender);
    }
  }

  return {
    size: () => total,
    usageOfSource: (source) => sources.get(source) ?? nothing,
    usageOfSender: (sender) => senders.get(sender) ?? nothing,
    largestSource() {
      const all = [...sources.values()];
      return {
        count: all.reduce((max, usage) => Math.max(max, usage.count), 0),
        bytes: all.reduce((max, usage) => Math.max(max, usage.bytes), 0),
      };
    },
    reserve: (entry) => count(entry, 1),
    release: (entry) => count(entry, -1),
    add(entry, arrivedMs) {
      const startTag = virtualTime.add(entry.source, entry.sender);
      const [relayedMs, deferredUntilMs] = [{ ...neverRelayed }, { ...neverRelayed }];
      const added: IndexEntry = { ...entry, arrivedMs, startTag, relayedMs, deferredUntilMs, refusals: 0 };
      entries.set(entry.hash, added);
      highestNonces.set(entry.sender, maxOf(entry.nonce, highestNonces.get(entry.sender)));
      order.add(added);
    },
    get: (hash) => entries.get(hash),
    remove(hash, cause) {
      const entry = entries.get(hash);
      if (entry !== undefined) {
        entries.delete(hash);
        count(entry, -1);
        virtualTime.remove(entry, cause !== "expired");
        order.remove(entry, cause === "included");
      }
      return entry;
    },
    lowerAfterNonce(hash, afterNonce) {
      const entry = entries.get(hash);
      if (entry !== undefined) {
        order.lowerAfterNonce(entry, afterNonce);
      }
    },
    entries: () => entries.values(),
    select: (limits, isEligible) => selectFair([...entries.values()].filter(isEligible), virtualTime, limits),
    selectInOrder(limits, monotonicMs, deferredFrom) {
      const waiting = order.findWaiting(entries.values(), monotonicMs);
      const isEligible = ({ hash, sender, nonce }: IndexEntry): boolean => {
        const from = deferredFrom.get(sender);
        return !waiting.has(hash) && (from === undefined || nonce < from);
      };
      const areAllEligible = waiting.size === 0 && deferredFrom.size === 0;
      const eligible = areAllEligible ? entries.values() : [...entries.values()].filter(isEligible);
      return selectFair(eligible, virtualTime, limits);
    },
    hasLater: ({ sender, nonce }) => (highestNonces.get(sender) ?? nonce) > nonce,
  };
}

function maxOf(nonce: bigint, other: bigint | undefined): bigint {
  return other !== undefined && other > nonce ? other : nonce;
}

/** Adds a transaction to the usage of a source or sender, or subtracts it. */
function change<K>(all: Map<K, Usage>, key: K, sign: 1 | -1, bytes: number): void {
  const usage = all.get(key) ?? { count: 0, bytes: 0 };
  usage.count += sign;
  usage.bytes += sign * bytes;
  if (usage.count === 0) {
    all.delete(key);
  } else {
    all.set(key, usage);
  }
}
