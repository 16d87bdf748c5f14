/**
 * The mempool of a node that writes: what waits for a block, stored as soon as it is taken, and known in memory by
 * everything but its bytes. This process is the only one that writes to it.
 */
import { findTransactionStatus } from "./transaction-status.js";
import { type Bounds, inPortions } from "./fair-queue.js";
import { type Admission, createAdmission, partOfPool, type Refusal } from "./mempool-admission.js";
import { createIntake, type Fit, type Handed } from "./mempool-intake.js";
import { createMempoolRemovals, type MempoolRemovals } from "./mempool-removals.js";
import { createMempoolIndex, type IndexEntry, type MempoolIndex } from "./mempool-index.js";
import { createRelayQueue, type RelayQueue } from "./mempool-relay.js";
import { createSenderArrivals } from "./sender-arrivals.js";
import { createSenderRates, type RatesPerMinute } from "./sender-rates.js";
import { unlessIncluded, waitsForEarlierMs } from "./sender-order.js";
import type { ChainStore, MempoolView, PendingTransaction, Rejection } from "../blocks/store.js";
import type { ReadTransaction } from "../transactions/transaction.js";

/** What a mempool is made of. */
export interface MempoolDeps {
  readonly store: Pick<ChainStore, "mempool" | "blockOf" | "included" | "lastNonce">;
  readonly rates: RatesPerMinute;
  readonly mayWrite: (sender: string) => boolean;
  readonly nowMs: () => number;
  /** A clock that does not jump, for what waits for a while. */
  readonly monotonicMs: () => number;
  /** Hears of each transaction that gets into no block, and why, once that is told. */
  readonly onRejected?: (rejection: Pick<Rejection, "hash" | "reason">) => void;
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
export interface Mempool extends MempoolView, RelayQueue, Pick<Admission, "announce" | "arrive"> {
  /**
   * Takes a transaction, unless it is pending or in a block already. Once this resolves, it is stored.
   *
   * @throws Failure INVALID_REQUEST for one that was rejected; PERMISSION_DENIED, OVERLOADED, RATE_LIMITED
   */
  admit(transaction: ReadTransaction, from: Handed, fit: Fit): Promise<void>;
  /** Somebody else hands in what is pending, and says what it comes after. */
  loosen(hash: string, afterNonce: bigint | undefined): void;
  /** Whether anything waits. */
  isEmpty(): boolean;
  /** Those whose turn is next, a few at a time; what left meanwhile is left out. */
  candidates(bounds: Bounds): AsyncIterable<readonly PendingTransaction[]>;
  /** Takes out what is in a block, and what gets into none, with why. Does not reject: what fails is tried again. */
  settle(included: readonly string[], rejected: ReadonlyMap<string, string>): Promise<void>;
  /** Rejects what has expired, and tries again what could not be stored. */
  sweep(): Promise<void>;
  stats(): MempoolStats;
}

/** Bodies that are read at once. */
const portionBounds: Bounds = { count: 100, bytes: 1024 * 1024 };
/** A rejection is told for so long after its transaction has expired. */
const tellRejectedMs = 3_600_000;
/** How often rejections are looked through for old ones. */
const forgetEveryMs = 60_000;

/** Opens the mempool: what is in a block already, since the process ended before it was taken out, is taken out now. */
export async function openMempool(deps: MempoolDeps): Promise<Mempool> {
  const { nowMs, monotonicMs } = deps;
  const { mempool: store, ...blocks } = deps.store;
  const index = createMempoolIndex();
  const arrivals = createSenderArrivals();
  const admission = createAdmission({ index, rates: createSenderRates(deps.rates), mayWrite: deps.mayWrite });
  const leaving = createMempoolRemovals(deps);
  let forgottenAtMs = 0;

  const isPending = (hash: string): boolean => index.get(hash) !== undefined;

  async function settle(
    included: readonly string[],
    rejected: ReadonlyMap<string, string>,
    end: "rejected" | "expired" = "rejected",
  ): Promise<void> {
    for (const hash of included) {
      intake.include(hash);
      if (index.remove(hash, "included") !== undefined) {
        leaving.include(hash);
      }
    }
    for (const [hash, reason] of rejected) {
      const entry = index.remove(hash, end);
      if (entry !== undefined) {
        leaving.reject({ hash, reason, rejectedMs: nowMs(), expiresMs: entry.expiresMs });
        deps.onRejected?.({ hash, reason });
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
      if (transaction !== undefined) {
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
      findTransactionStatus(hash, {
        isPending,
        blockOf: (asked) => blocks.blockOf(asked),
        rejectionOf: (asked) => leaving.rejectionOf(asked) ?? store.rejectionOf(asked),
      }),
    oldestPending: (limit) => Promise.resolve([...index.entries()].slice(0, limit)),
    pending: async (hash) => (isPending(hash) ? (await store.readPending([hash])).get(hash) : undefined),
  };

  const newestMs = await load(deps, index, leaving);
  const intake = createIntake({
    ...{ index, arrivals, admission, store, newestMs, nowMs, monotonicMs },
    fate: (hash) => view.fate(hash),
    onIncluded: (hash) => settle([hash], new Map()),
  });

  return {
    ...view,
    ...createRelayQueue({ index, arrivals, read, monotonicMs }),
    announce: (bytes, origin) => admission.announce(bytes, origin),
    arrive: (bytes, origin) => admission.arrive(bytes, origin),
    admit: (transaction, from, fit) => intake.admit(transaction, from, fit),
    loosen: (hash, afterNonce) => index.loosen(hash, afterNonce),
    isEmpty: () => index.size().count === 0,

    async *candidates(bounds) {
      const selected = index.selectInOrder(bounds, monotonicMs(), arrivals.earliest());
      for (const portion of inPortions(selected, portionBounds)) {
        yield await read(portion);
      }
    },

    settle: (included, rejected) => settle(included, rejected),

    async sweep() {
      const now = nowMs();
      const expired = [...index.entries()].filter(({ expiresMs }) => expiresMs < now);
      const reasons = expired.map(({ hash, expiresMs }) => [hash, whyExpired(expiresMs)] as const);
      await settle([], new Map(reasons), "expired");
      if (now - forgottenAtMs >= forgetEveryMs) {
        forgottenAtMs = now;
        await store.forgetRejected(now - tellRejectedMs);
      }
    },

    stats() {
      const { count, bytes } = index.size();
      return { count, bytes, largestOrigin: partOfPool(index.largestOrigin()), refused: admission.refused };
    },
  };
}

/** Loads what is stored; gives when the newest came, 0 where there is none. */
async function load({ store, ...clocks }: MempoolDeps, index: MempoolIndex, leaving: MempoolRemovals): Promise<number> {
  const [now, monotonic] = [clocks.nowMs(), clocks.monotonicMs()];
  let newestMs = 0;
  const stored = await store.mempool.oldestPending(Number.MAX_SAFE_INTEGER);
  const inBlocks = await store.included(stored.map(({ hash }) => hash));
  for (const row of stored) {
    if (inBlocks.has(row.hash)) {
      leaving.include(row.hash);
    } else {
      // Its predecessor may have got into a block since it came.
      const lastNonce = row.afterNonce === undefined ? undefined : await store.lastNonce(row.sender);
      const entry = { ...row, afterNonce: unlessIncluded(row.afterNonce, lastNonce) };
      index.takeRoom(entry);
      // What another process took has waited for as long as the times say, where they can be true.
      index.add(entry, monotonic - Math.min(waitsForEarlierMs, Math.max(0, now - entry.receivedMs)));
      newestMs = Math.max(newestMs, entry.receivedMs);
    }
  }
  await leaving.store();
  return newestMs;
}

function whyExpired(expiresMs: number): string {
  return `The transaction has expired: it was in no block by ${new Date(expiresMs).toISOString()}.`;
}
