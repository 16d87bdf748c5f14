/**
 * In-memory index of pending transactions without their bytes: usage by source and sender, the fair order, and the
 * submission order of each sender, which relays preserve. A relayed transaction carries the nonce of its predecessor and
 * waits for that predecessor. The relaying peer states the predecessor, not the sender. The wait is therefore limited,
 * and the lowest stated nonce wins.
 */
import { createLruCache } from "../../base/caches/lru-cache.js";
import { createFairQueue, type QueuedTransaction, type SelectionLimits } from "./fair-queue.js";
import type { PendingEntry } from "../blocks/store-types.js";

/** Size of the mempool, or of one source's or sender's usage. */
export interface MempoolSize {
  readonly count: number;
  readonly bytes: number;
}

/** Kind of node that transactions are relayed to. */
export type RelayTarget = "authority" | "peer";

/** Limit in milliseconds on the time that a transaction waits for its predecessor, from its arrival on. */
export const maxPredecessorWaitMs = 30_000;
/** Limit on senders whose last included nonce is cached. */
const maxSenders = 20_000;

/** Pending transaction in the index. */
export interface IndexEntry extends Omit<PendingEntry, "afterNonce">, QueuedTransaction {
  /** Monotonic time of arrival. */
  readonly arrivedMs: number;
  /** Nonce of the predecessor; undefined if there is none, or once the predecessor is in a block or can never be. */
  afterNonce: bigint | undefined;
  /** Monotonic times of the last relay, to an authority and to another peer. */
  readonly relayedMs: Record<RelayTarget, number>;
  /** Monotonic times before which the transaction is not relayed again. */
  readonly deferredUntilMs: Record<RelayTarget, number>;
  /** Number of temporary rejections after relays, up to 4; sets the backoff. */
  refusals: number;
}

/** Reason for which a transaction leaves the mempool. */
export type RemovalCause = "included" | "rejected" | "expired";

type Usage = { -readonly [Name in keyof MempoolSize]: number };

const never: Readonly<Record<RelayTarget, number>> = { authority: -Infinity, peer: -Infinity };

export type MempoolIndex = ReturnType<typeof createMempoolIndex>;

/** Creates an empty index. All sizes include reserved capacity. */
export function createMempoolIndex() {
  const entries = new Map<string, IndexEntry>();
  const queue = createFairQueue<IndexEntry>();
  const total: Usage = { count: 0, bytes: 0 };
  const sources = new Map<string | undefined, Usage>();
  const senders = new Map<string, Usage>();
  const lastIncluded = createLruCache<bigint>(maxSenders);

  function count({ source, sender, sizeBytes }: Pick<PendingEntry, "source" | "sender" | "sizeBytes">, sign: 1 | -1) {
    total.count += sign;
    total.bytes += sign * sizeBytes;
    change(sources, source, sign, sizeBytes);
    change(senders, sender, sign, sizeBytes);
  }

  function setAfterNonce(entry: IndexEntry, afterNonce: bigint | undefined): void {
    entry.afterNonce = unlessIncluded(afterNonce, lastIncluded.get(entry.sender));
  }

  return {
    size: (): MempoolSize => total,
    usageOfSource: (source: string | undefined): MempoolSize => sources.get(source) ?? nothing,
    usageOfSender: (sender: string): MempoolSize => senders.get(sender) ?? nothing,
    /** Returns the largest count and the largest bytes of any source; each may belong to a different source. */
    largestSource(): MempoolSize {
      const all = [...sources.values()];
      return {
        count: all.reduce((max, usage) => Math.max(max, usage.count), 0),
        bytes: all.reduce((max, usage) => Math.max(max, usage.bytes), 0),
      };
    },

    /** Reserves capacity for a transaction that is being stored. */
    reserve: (entry: PendingEntry): void => count(entry, 1),
    /** Releases reserved capacity if the transaction could not be stored. */
    release: (entry: PendingEntry): void => count(entry, -1),

    /** Adds a stored transaction, for which capacity was reserved. `arrivedMs` is a monotonic time. */
    add(stored: PendingEntry, arrivedMs: number): void {
      const entry: IndexEntry = {
        ...{ ...stored, arrivedMs, refusals: 0 },
        ...{ relayedMs: { ...never }, deferredUntilMs: { ...never } },
      };
      entries.set(entry.hash, entry);
      setAfterNonce(entry, entry.afterNonce);
      queue.add(entry);
    },

    get: (hash: string): IndexEntry | undefined => entries.get(hash),

    /** Returns all transactions in order of arrival. */
    entries: (): Iterable<IndexEntry> => entries.values(),

    /** Removes a transaction, releases its capacity and returns it; undefined if the index does not contain it. */
    remove(hash: string, cause: RemovalCause): IndexEntry | undefined {
      const entry = entries.get(hash);
      if (entry === undefined) {
        return undefined;
      }
      const { sender, nonce } = entry;
      entries.delete(hash);
      count(entry, -1);
      queue.remove(entry, cause !== "expired");
      if (cause === "included" && nonce > (lastIncluded.get(sender) ?? -1n)) {
        lastIncluded.set(sender, nonce);
      }
      const lastNonce = lastIncluded.get(sender);
      for (const other of queue.ofSender(sender)) {
        other.afterNonce = other.afterNonce === nonce ? undefined : unlessIncluded(other.afterNonce, lastNonce);
      }
      return entry;
    },

    /**
     * Lowers the nonce that a pending transaction waits for, because another submission states this lower one.
     * `undefined` ends the wait.
     */
    lowerAfterNonce: (hash: string, afterNonce: bigint | undefined): void => {
      const entry = entries.get(hash);
      if (entry?.afterNonce !== undefined && (afterNonce === undefined || afterNonce < entry.afterNonce)) {
        setAfterNonce(entry, afterNonce);
      }
    },

    /**
     * Selects the next transactions in fair order. Omits each that must wait, and the later ones of its sender.
     *
     * @param isSkipped returns true for transactions that are omitted without effect on others.
     */
    select(
      limits: SelectionLimits,
      mustWait: (entry: IndexEntry, i: number, ofSender: readonly IndexEntry[]) => boolean,
      isSkipped: (entry: IndexEntry) => boolean = () => false,
    ): IndexEntry[] {
      return queue.select(limits, (ofSender) => {
        const first = ofSender.findIndex(mustWait);
        return ofSender.slice(0, first < 0 ? undefined : first).filter((entry) => !isSkipped(entry));
      });
    },

    /**
     * Returns the predecessor's nonce of a transaction: the larger one of the pending predecessor and the one stated by
     * the relaying peer.
     */
    predecessorOf({ sender, nonce, afterNonce }: IndexEntry): bigint | undefined {
      const previous = queue.ofSender(sender).findLast((other) => other.nonce < nonce)?.nonce;
      return previous === undefined || (afterNonce ?? -1n) > previous ? afterNonce : previous;
    },

    /** Returns true if the sender has a pending transaction with a higher nonce. */
    hasLater: ({ sender, nonce }: Pick<PendingEntry, "sender" | "nonce">): boolean =>
      (queue.ofSender(sender).at(-1)?.nonce ?? nonce) > nonce,
  };
}

const nothing: MempoolSize = { count: 0, bytes: 0 };

/** Returns true if the i-th transaction of a sender waits for a predecessor that is not pending. */
export function lacksPredecessor(i: number, ofSender: readonly IndexEntry[], monotonicMs: number): boolean {
  const { afterNonce, arrivedMs } = ofSender[i]!;
  if (afterNonce === undefined || monotonicMs >= arrivedMs + maxPredecessorWaitMs) {
    return false;
  }
  let previous = i - 1;
  while (previous >= 0 && ofSender[previous]!.nonce > afterNonce) {
    previous--;
  }
  return ofSender[previous]?.nonce !== afterNonce;
}

/**
 * Returns the predecessor's nonce. Returns undefined if the predecessor needs no wait: the sender's last nonce in a
 * block is that one or a higher one.
 */
export function unlessIncluded(afterNonce: bigint | undefined, lastNonce: bigint | undefined): bigint | undefined {
  return afterNonce !== undefined && lastNonce !== undefined && afterNonce <= lastNonce ? undefined : afterNonce;
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
