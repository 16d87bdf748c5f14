/**
 * The mempool of a node that writes: what waits for a block, stored as soon as it is taken, and known in memory by
 * everything but its bytes. This process is the only one that writes to it.
 */
import { sha256 } from "../base/hash.js";
import { Failure } from "../rpc/errors.js";
import { findFate } from "./fate.js";
import { type Bounds, inPortions } from "./fair-order.js";
import { type Admission, createAdmission, type Origin, partOfPool, type Refusal } from "./mempool-admission.js";
import { createLeaving } from "./mempool-leaving.js";
import { createMempoolIndex, type IndexEntry } from "./mempool-index.js";
import { createSenderRates, type RatesPerMinute } from "./sender-rates.js";
import type { ChainStore, MempoolView, PendingEntry, PendingTransaction, RelayTarget } from "./store.js";
import { encodeTransaction, type ReadTransaction } from "./transaction.js";

/** What a mempool is made of. */
export interface MempoolParts {
  readonly store: Pick<ChainStore, "mempool" | "blockOf" | "included">;
  readonly rates: RatesPerMinute;
  readonly mayWrite: (sender: string) => boolean;
  readonly nowMs: () => number;
  /** Hears that what left could not be taken out of the database yet; it is tried again. */
  readonly onError: (error: unknown) => void;
}

/** How full it is, and whom it refused. */
export interface MempoolStats {
  readonly count: number;
  readonly bytes: number;
  /** The largest part of the mempool that one origin has, from 0 to 1. */
  readonly largestOrigin: number;
  readonly refused: Readonly<Record<Refusal, number>>;
}

/** The mempool. */
export interface Mempool extends MempoolView, Pick<Admission, "arrive"> {
  /**
   * Takes a transaction, unless it is pending or in a block already. Once this resolves, it is stored.
   *
   * @param origin undefined for this node itself.
   * @param check rejects for a transaction that does not fit to the chain.
   * @throws Failure INVALID_REQUEST for one that was rejected; PERMISSION_DENIED, OVERLOADED, RATE_LIMITED
   */
  admit(transaction: ReadTransaction, origin: Origin | undefined, check: () => Promise<void>): Promise<void>;
  /** Whether anything waits. */
  isEmpty(): boolean;
  /** Those whose turn is next, a few at a time; what left meanwhile is left out. */
  candidates(bounds: Bounds): AsyncIterable<readonly PendingTransaction[]>;
  /** Takes out what is in a block, and what gets into none, with why. Does not reject: what fails is tried again. */
  settle(included: readonly string[], rejected: ReadonlyMap<string, string>): Promise<void>;
  /** Rejects what has expired, and tries again what could not be stored. */
  sweep(): Promise<void>;
  /** Those whose turn is next to be relayed to such a node, of those that were not since then. */
  toRelay(to: RelayTarget, relayedBeforeMs: number, bounds: Bounds): Promise<readonly PendingTransaction[]>;
  /** Remembers that transactions were relayed. */
  markRelayed(to: RelayTarget, hashes: readonly string[], relayedMs: number): void;
  /** Lets transactions wait before they are relayed again, longer each time, and what their senders sent after them. */
  defer(to: RelayTarget, hashes: readonly string[]): void;
  stats(): MempoolStats;
}

/** Bodies that are read at once. */
const portionBounds: Bounds = { count: 100, bytes: 1024 * 1024 };
/** A rejection is told for so long after its transaction has expired. */
const tellRejectedMs = 3_600_000;
/** How long one waits that was refused for the moment where it was relayed to, and how often that doubles. */
const deferredMs = 1_000;
const maxDoublings = 4;
/** How often rejections are looked through for old ones. */
const forgetEveryMs = 60_000;

/** A transaction that is being stored. */
interface Arrival {
  readonly settled: Promise<void>;
  /** A block with it has come meanwhile. */
  isIncluded: boolean;
}

/** Opens the mempool: what is in a block already, since the process ended before it was taken out, is taken out now. */
export async function openMempool(parts: MempoolParts): Promise<Mempool> {
  const { nowMs } = parts;
  const { mempool: store, ...blocks } = parts.store;
  const index = createMempoolIndex();
  const admission = createAdmission({ index, rates: createSenderRates(parts.rates), mayWrite: parts.mayWrite });
  const arrivals = new Map<string, Arrival>();
  const leaving = createLeaving(parts);
  let lastReceivedMs = 0;
  let forgottenAtMs = 0;

  const isPending = (hash: string): boolean => index.get(hash) !== undefined;

  function entryFor({ hash, body, signed }: ReadTransaction, origin: Origin | undefined): PendingEntry {
    const { sender, nonce, timestampMs } = body;
    const sizeBytes = encodeTransaction(signed).length;
    const [receivedMs, expiresMs] = [nowMs(), Number(body.expiresMs)];
    return { hash, sender, nonce, timestampMs, sizeBytes, origin: origin?.address, receivedMs, expiresMs };
  }

  async function take(
    transaction: ReadTransaction,
    origin: Origin | undefined,
    check: () => Promise<void>,
    isIncluded: () => boolean,
  ): Promise<void> {
    const { hash, signed } = transaction;
    const fate = await view.fate(hash);
    if (fate?.status === "rejected") {
      throw new Failure("INVALID_REQUEST", `The transaction was rejected: ${fate.reason}`);
    }
    if (fate !== undefined) {
      return;
    }
    const asked = entryFor(transaction, origin);
    admission.check(transaction, asked, origin);
    await check();
    if (isIncluded()) {
      return;
    }
    // No two alike, so that they are loaded in the order in which they came.
    lastReceivedMs = Math.max(nowMs(), lastReceivedMs + 1);
    const entry = { ...asked, receivedMs: lastReceivedMs };
    admission.take(transaction, entry, origin);
    try {
      await store.insertPending(entry, encodeTransaction(signed));
    } catch (error) {
      index.giveRoom(entry);
      throw error;
    }
    index.add(entry);
    if (isIncluded()) {
      await settle([hash], new Map());
    }
  }

  async function settle(
    included: readonly string[],
    rejected: ReadonlyMap<string, string>,
    isServed = true,
  ): Promise<void> {
    for (const hash of included) {
      const arrival = arrivals.get(hash);
      if (arrival !== undefined) {
        arrival.isIncluded = true;
      }
      if (index.remove(hash, true) !== undefined) {
        leaving.include(hash);
      }
    }
    for (const [hash, reason] of rejected) {
      const entry = index.remove(hash, isServed);
      if (entry !== undefined) {
        leaving.reject({ hash, reason, rejectedMs: nowMs(), expiresMs: entry.expiresMs });
      }
    }
    await leaving.store();
  }

  /** What somebody changed in the database is rejected: what is read is what was taken. */
  async function read(entries: readonly IndexEntry[]): Promise<PendingTransaction[]> {
    const found = await store.readPending(entries.map(({ hash }) => hash));
    const read: PendingTransaction[] = [];
    const unreadable = new Map<string, string>();
    for (const { hash } of entries.filter((entry) => isPending(entry.hash))) {
      const transaction = found.get(hash);
      if (transaction !== undefined && sha256(transaction.body) === hash) {
        read.push({ hash, transaction });
      } else {
        unreadable.set(hash, "It could not be read again from the database.");
      }
    }
    await settle([], unreadable);
    return read;
  }

  const view: MempoolView = {
    fate: (hash) =>
      findFate(hash, {
        isPending,
        blockOf: (asked) => blocks.blockOf(asked),
        rejectionOf: (asked) => leaving.rejectionOf(asked) ?? store.rejectionOf(asked),
      }),
    oldestPending: (limit) => Promise.resolve([...index.entries()].slice(0, limit)),
  };

  const stored = await store.oldestPending(Number.MAX_SAFE_INTEGER);
  const included = await blocks.included(stored.map(({ hash }) => hash));
  for (const entry of stored) {
    if (included.has(entry.hash)) {
      leaving.include(entry.hash);
    } else {
      index.takeRoom(entry);
      index.add(entry);
      lastReceivedMs = Math.max(lastReceivedMs, entry.receivedMs);
    }
  }
  await leaving.store();

  return {
    ...view,
    arrive: (bytes, origin) => admission.arrive(bytes, origin),

    async admit(transaction, origin, check) {
      const { hash } = transaction;
      // Who sends the same meanwhile waits for what becomes of it, and then has a chance of his own.
      for (let other = arrivals.get(hash); other !== undefined; other = arrivals.get(hash)) {
        await other.settled.catch(() => undefined);
      }
      if (isPending(hash)) {
        return;
      }
      const settled = Promise.resolve()
        .then(() => take(transaction, origin, check, () => arrival.isIncluded))
        .finally(() => arrivals.delete(hash));
      const arrival: Arrival = { settled, isIncluded: false };
      arrivals.set(hash, arrival);
      await settled;
    },

    isEmpty: () => index.size().count === 0,

    async *candidates(bounds) {
      for (const portion of inPortions(index.select(bounds), portionBounds)) {
        yield await read(portion);
      }
    },

    settle: (included, rejected) => settle(included, rejected),

    async sweep() {
      const now = nowMs();
      const expired = [...index.entries()].filter(({ expiresMs }) => expiresMs < now);
      const reasons = expired.map(({ hash, expiresMs }) => [hash, whyExpired(expiresMs)] as const);
      await settle([], new Map(reasons), false);
      if (now - forgottenAtMs >= forgetEveryMs) {
        forgottenAtMs = now;
        await store.forgetRejected(now - tellRejectedMs);
      }
    },

    async toRelay(to, relayedBeforeMs, bounds) {
      const now = nowMs();
      const deferredFrom = new Map<string, bigint>();
      for (const { sender, nonce, deferredUntilMs } of index.entries()) {
        const from = deferredFrom.get(sender);
        if (deferredUntilMs[to] > now && (from === undefined || nonce < from)) {
          deferredFrom.set(sender, nonce);
        }
      }
      const isWanted = ({ sender, nonce, relayedMs }: IndexEntry): boolean => {
        const from = deferredFrom.get(sender);
        return relayedMs[to] < relayedBeforeMs && (from === undefined || nonce < from);
      };
      return await read(index.select(bounds, isWanted));
    },

    markRelayed(to, hashes, relayedMs) {
      for (const hash of hashes) {
        const entry = index.get(hash);
        if (entry !== undefined) {
          entry.relayedMs[to] = relayedMs;
        }
      }
    },

    defer(to, hashes) {
      for (const hash of hashes) {
        const entry = index.get(hash);
        if (entry !== undefined) {
          entry.deferredUntilMs[to] = nowMs() + deferredMs * 2 ** entry.refusals;
          entry.refusals = Math.min(entry.refusals + 1, maxDoublings);
        }
      }
    },

    stats() {
      const { count, bytes } = index.size();
      return { count, bytes, largestOrigin: partOfPool(index.largestOrigin()), refused: admission.refused };
    },
  };
}

function whyExpired(expiresMs: number): string {
  return `The transaction has expired: it was in no block by ${new Date(expiresMs).toISOString()}.`;
}
