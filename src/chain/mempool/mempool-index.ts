/** Index in memory of pending transactions without their bytes: usage by source and sender, and the fair order. */
import { createVirtualTime, selectFair, type Bounds, type Waiting } from "./fair-queue.js";
import { createSenderOrder, type Ordered } from "./sender-order.js";
import type { MempoolSize, PendingEntry, RelayTarget } from "../blocks/store.js";

/** Pending transaction in the index. */
export interface IndexEntry extends Omit<PendingEntry, "afterNonce">, Ordered, Waiting {
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
  heldByOrigin(origin: string | undefined): MempoolSize;
  heldBySender(sender: string): MempoolSize;
  /** Returns the largest count and the largest bytes of any source; each may belong to a different source. */
  largestOrigin(): MempoolSize;
  /** Reserves capacity for a transaction that is being stored. */
  takeRoom(entry: PendingEntry): void;
  /** Releases reserved capacity if the transaction could not be stored. */
  giveRoom(entry: PendingEntry): void;
  /** Adds a stored transaction, for which capacity was reserved. `arrivedMs` is a monotonic time. */
  add(entry: PendingEntry, arrivedMs: number): void;
  get(hash: string): IndexEntry | undefined;
  /** Removes a transaction and releases its capacity; undefined if the index does not contain it. */
  remove(hash: string, end: End): IndexEntry | undefined;
  /** Lowers the nonce that a transaction waits for; `undefined` ends the wait. */
  loosen(hash: string, afterNonce: bigint | undefined): void;
  /** Returns all transactions in order of arrival. */
  entries(): Iterable<IndexEntry>;
  /** Selects the next wanted transactions in fair order. */
  select(bounds: Bounds, isWanted: (entry: IndexEntry) => boolean): IndexEntry[];
  /**
   * Selects the next transactions in fair order. Skips those that wait for an earlier transaction of their sender.
   *
   * @param heldFrom nonce by sender, from which on its transactions are skipped.
   */
  selectInOrder(bounds: Bounds, monotonicMs: number, heldFrom: ReadonlyMap<string, bigint>): IndexEntry[];
  /** Returns true if the sender may have a pending transaction with a higher nonce. False is always exact. */
  hasLater(transaction: Pick<PendingEntry, "sender" | "nonce">): boolean;
}

/** Way in which a transaction leaves the mempool. An expired transaction was not served. */
export type End = "included" | "rejected" | "expired";

interface Held {
  count: number;
  bytes: number;
}

const nothing: MempoolSize = { count: 0, bytes: 0 };
const never: Readonly<Record<RelayTarget, number>> = { authority: -Infinity, peer: -Infinity };

/** Creates an empty index. */
export function createMempoolIndex(): MempoolIndex {
  const entries = new Map<string, IndexEntry>();
  const total: Held = { count: 0, bytes: 0 };
  const origins = new Map<string | undefined, Held>();
  const senders = new Map<string, Held>();
  /** Highest nonce of each sender, retained as long as any of its transactions is pending. */
  const latest = new Map<string, bigint>();
  const line = createVirtualTime();
  const order = createSenderOrder<IndexEntry>();

  function count({ origin, sender, sizeBytes }: PendingEntry, sign: 1 | -1): void {
    total.count += sign;
    total.bytes += sign * sizeBytes;
    change(origins, origin, sign, sizeBytes);
    change(senders, sender, sign, sizeBytes);
    if (!senders.has(sender)) {
      latest.delete(sender);
    }
  }

  return {
    size: () => total,
    heldByOrigin: (origin) => origins.get(origin) ?? nothing,
    heldBySender: (sender) => senders.get(sender) ?? nothing,
    largestOrigin() {
      const all = [...origins.values()];
      return {
        count: all.reduce((most, held) => Math.max(most, held.count), 0),
        bytes: all.reduce((most, held) => Math.max(most, held.bytes), 0),
      };
    },
    takeRoom: (entry) => count(entry, 1),
    giveRoom: (entry) => count(entry, -1),
    add(entry, arrivedMs) {
      const stamp = line.arrive(entry.origin, entry.sender);
      const [relayedMs, deferredUntilMs] = [{ ...never }, { ...never }];
      const added: IndexEntry = { ...entry, arrivedMs, stamp, relayedMs, deferredUntilMs, refusals: 0 };
      entries.set(entry.hash, added);
      latest.set(entry.sender, maxOf(entry.nonce, latest.get(entry.sender)));
      order.add(added);
    },
    get: (hash) => entries.get(hash),
    remove(hash, end) {
      const entry = entries.get(hash);
      if (entry !== undefined) {
        entries.delete(hash);
        count(entry, -1);
        line.leave(entry, end !== "expired");
        order.remove(entry, end === "included");
      }
      return entry;
    },
    loosen(hash, afterNonce) {
      const entry = entries.get(hash);
      if (entry !== undefined) {
        order.loosen(entry, afterNonce);
      }
    },
    entries: () => entries.values(),
    select: (bounds, isWanted) => selectFair([...entries.values()].filter(isWanted), line, bounds),
    selectInOrder(bounds, monotonicMs, heldFrom) {
      const early = order.findEarly(entries.values(), monotonicMs);
      const isHeld = ({ hash, sender, nonce }: IndexEntry): boolean => {
        const from = heldFrom.get(sender);
        return early.has(hash) || (from !== undefined && nonce >= from);
      };
      const waiting = entries.values();
      const isFree = early.size === 0 && heldFrom.size === 0;
      return selectFair(isFree ? waiting : [...waiting].filter((entry) => !isHeld(entry)), line, bounds);
    },
    hasLater: ({ sender, nonce }) => (latest.get(sender) ?? nonce) > nonce,
  };
}

function maxOf(nonce: bigint, other: bigint | undefined): bigint {
  return other !== undefined && other > nonce ? other : nonce;
}

function change<K>(all: Map<K, Held>, key: K, sign: 1 | -1, bytes: number): void {
  const held = all.get(key) ?? { count: 0, bytes: 0 };
  held.count += sign;
  held.bytes += sign * bytes;
  if (held.count === 0) {
    all.delete(key);
  } else {
    all.set(key, held);
  }
}
