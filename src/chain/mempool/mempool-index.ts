/** What waits for a block, in memory and without its bytes: who has how much of the mempool, and whose turn it is. */
import { createVirtualTime, selectFair, type Bounds, type Waiting } from "./fair-queue.js";
import { createSenderOrder, type Ordered } from "./sender-order.js";
import type { MempoolSize, PendingEntry, RelayTarget } from "../blocks/store.js";

/** A pending transaction of the index. */
export interface IndexEntry extends Omit<PendingEntry, "afterNonce">, Ordered, Waiting {
  /** When it was last relayed to an authority, and to a peer that is none, on a clock that does not jump. */
  readonly relayedMs: Record<RelayTarget, number>;
  /** It is not relayed to them before then, on the same clock. */
  readonly deferredUntilMs: Record<RelayTarget, number>;
  /** How often it was refused for the moment. */
  refusals: number;
}

/** The index of a mempool. */
export interface MempoolIndex {
  /** With the room that is taken. */
  size(): MempoolSize;
  /** What an origin has, with the room that is taken for it. */
  heldByOrigin(origin: string | undefined): MempoolSize;
  heldBySender(sender: string): MempoolSize;
  /** The most that one origin has, of each. */
  largestOrigin(): MempoolSize;
  /** Takes room for a transaction that is being stored. */
  takeRoom(entry: PendingEntry): void;
  /** Gives the room back: it could not be stored, or is in a block already. */
  giveRoom(entry: PendingEntry): void;
  /** A transaction that room was taken for is stored, and came at this time of a clock that does not jump. */
  add(entry: PendingEntry, arrivedMs: number): void;
  get(hash: string): IndexEntry | undefined;
  /** Takes a transaction out, with its room; undefined when it is not in. */
  remove(hash: string, end: End): IndexEntry | undefined;
  /** Somebody says of a transaction that it comes after this one at the latest, or after none. */
  loosen(hash: string, afterNonce: bigint | undefined): void;
  /** All of them, in the order in which they came. */
  entries(): Iterable<IndexEntry>;
  /** Those whose turn is next, of those that are wanted. */
  select(bounds: Bounds, isWanted: (entry: IndexEntry) => boolean): IndexEntry[];
  /**
   * Those whose turn is next, and that do not wait for an earlier one of their sender.
   *
   * @param heldFrom the nonce from which on nothing of a sender has its turn, for some senders.
   */
  selectInOrder(bounds: Bounds, monotonicMs: number, heldFrom: ReadonlyMap<string, bigint>): IndexEntry[];
  /** Returns true if a later transaction of the sender may be here; false where none is. */
  hasLater(transaction: Pick<PendingEntry, "sender" | "nonce">): boolean;
}

/** How a transaction leaves: into a block, or never into one; what expired had no turn. */
export type End = "included" | "rejected" | "expired";

interface Held {
  count: number;
  bytes: number;
}

const nothing: MempoolSize = { count: 0, bytes: 0 };
const never: Readonly<Record<RelayTarget, number>> = { authority: -Infinity, peer: -Infinity };

/** Builds an empty index. */
export function createMempoolIndex(): MempoolIndex {
  const entries = new Map<string, IndexEntry>();
  const total: Held = { count: 0, bytes: 0 };
  const origins = new Map<string | undefined, Held>();
  const senders = new Map<string, Held>();
  /** The latest nonce that a sender had here, for as long as anything of the sender is here. */
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
