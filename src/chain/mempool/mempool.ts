/**
 * Mempool of a node that writes. Transactions are stored on admission; memory holds an index without their bytes. Only
 * this process writes to the mempool.
 */
import { findTransactionStatus } from "./transaction-status.js";
import { type SelectionLimits, inPortions } from "./fair-queue.js";
import { type Admission, createAdmission, fractionOfPool, type Refusal } from "./mempool-admission.js";
import { createIntake, type ChainChecks, type SubmissionSource } from "./mempool-intake.js";
import { createMempoolRemovals, type MempoolRemovals } from "./mempool-removals.js";
import { createMempoolIndex, type IndexEntry, type MempoolIndex } from "./mempool-index.js";
import { createRelayQueue, type RelayQueue } from "./mempool-relay.js";
import { createSenderArrivals } from "./sender-arrivals.js";
import { createSenderRates, type RatesPerMinute } from "./sender-rates.js";
import { unlessIncluded, maxPredecessorWaitMs } from "./sender-order.js";
import type { ChainStore, MempoolView, PendingTransaction, Rejection } from "../blocks/store.js";
import type { VerifiedTransaction } from "../transactions/transaction.js";

export interface MempoolDeps {
  readonly store: Pick<ChainStore, "mempool" | "blockOf" | "included" | "lastNonce">;
  readonly rates: RatesPerMinute;
  /** Returns true if the sender's key may write to this node. */
  readonly mayWrite: (sender: string) => boolean;
  readonly nowMs: () => number;
  /** Monotonic clock, for delays and waiting times. */
  readonly monotonicMs: () => number;
  /** Called for each rejected or expired transaction, with the reason, once its status is available. */
  readonly onRejected?: (rejection: Pick<Rejection, "hash" | "reason">) => void;
  /** Called when removals cannot be stored; the mempool retries them. */
  readonly onError: (error: unknown) => void;
}

/** Usage of the mempool, and numbers of refused transactions. */
export interface MempoolStats {
  readonly count: number;
  readonly bytes: number;
  /** Fraction of the mempool that the largest source takes, from 0 to 1. */
  readonly largestSource: number;
  readonly refused: Readonly<Record<Refusal, number>>;
}

export interface Mempool extends MempoolView, RelayQueue, Pick<Admission, "precheck" | "countBytes"> {
  /**
   * Admits a transaction, unless it is pending or in a block already. Resolves once the transaction is stored.
   *
   * @throws RpcError INVALID_REQUEST if it was rejected before; PERMISSION_DENIED, OVERLOADED, RATE_LIMITED
   */
  admit(transaction: VerifiedTransaction, from: SubmissionSource, checks: ChainChecks): Promise<void>;
  /**
   * Lowers the nonce that a pending transaction waits for, because another submission states this lower one.
   * `undefined` ends the wait.
   */
  lowerAfterNonce(hash: string, afterNonce: bigint | undefined): void;
  /** Returns true if nothing is pending. */
  isEmpty(): boolean;
  /** Yields the next transactions for a block in fair order, in small groups. Skips those that left meanwhile. */
  candidates(limits: SelectionLimits): AsyncIterable<readonly PendingTransaction[]>;
  /**
   * Removes included transactions, and rejected ones with their reasons. Never rejects: failed removals are retried.
   */
  remove(included: readonly string[], rejected: ReadonlyMap<string, string>): Promise<void>;
  /** Rejects expired transactions, retries failed removals, and deletes old rejections. */
  sweep(): Promise<void>;
  stats(): MempoolStats;
}

/** Limits on transactions whose bytes are read at once. */
const portionLimits: SelectionLimits = { count: 100, bytes: 1024 * 1024 };
/** Time for which a rejection is retained after its transaction expires. */
const retainRejectedMs = 3_600_000;
/** Interval between deletions of old rejections. */
const deleteEveryMs = 60_000;

/**
 * Opens the mempool. Removes transactions that are in a block already: an earlier process stopped before it removed
 * them.
 */
export async function openMempool(deps: MempoolDeps): Promise<Mempool> {
  const { nowMs, monotonicMs } = deps;
  const { mempool: store, ...blocks } = deps.store;
  const index = createMempoolIndex();
  const arrivals = createSenderArrivals();
  const admission = createAdmission({ index, rates: createSenderRates(deps.rates), mayWrite: deps.mayWrite });
  const removals = createMempoolRemovals(deps);
  let lastDeletionMs = 0;

  const isPending = (hash: string): boolean => index.get(hash) !== undefined;

  async function remove(
    included: readonly string[],
    rejected: ReadonlyMap<string, string>,
    cause: "rejected" | "expired" = "rejected",
  ): Promise<void> {
    for (const hash of included) {
      intake.include(hash);
      if (index.remove(hash, "included") !== undefined) {
        removals.include(hash);
      }
    }
    for (const [hash, reason] of rejected) {
      const entry = index.remove(hash, cause);
      if (entry !== undefined) {
        removals.reject({ hash, reason, rejectedMs: nowMs(), expiresMs: entry.expiresMs });
        deps.onRejected?.({ hash, reason });
      }
    }
    await removals.store();
  }

  /** Reads transactions that are still pending. Rejects those whose stored bytes were changed by another process. */
  async function read(entries: readonly IndexEntry[]): Promise<PendingTransaction[]> {
    const stored = await store.readPending(entries.map(({ hash }) => hash));
    const transactions: PendingTransaction[] = [];
    const unreadable = new Map<string, string>();
    for (const { hash } of entries.filter((entry) => isPending(entry.hash))) {
      const transaction = stored.get(hash);
      if (transaction !== undefined) {
        transactions.push({ hash, transaction });
      } else {
        unreadable.set(hash, "The transaction could not be read again from the database.");
      }
    }
    await remove([], unreadable);
    return transactions;
  }

  const view: MempoolView = {
    transactionStatus: (hash) =>
      findTransactionStatus({
        isPending: () => isPending(hash),
        blockNumber: () => blocks.blockOf(hash),
        rejectionReason: () => removals.rejectionOf(hash) ?? store.rejectionOf(hash),
      }),
    oldestPending: (limit) => Promise.resolve([...index.entries()].slice(0, limit)),
    pending: async (hash) => (isPending(hash) ? (await store.readPending([hash])).get(hash) : undefined),
  };

  const latestMs = await load(deps, index, removals);
  const intake = createIntake({
    ...{ index, arrivals, admission, store, latestMs, nowMs, monotonicMs },
    statusOf: (hash) => view.transactionStatus(hash),
    onIncluded: (hash) => remove([hash], new Map()),
  });

  return {
    ...view,
    ...createRelayQueue({ index, arrivals, read, monotonicMs }),
    precheck: (bytes, source) => admission.precheck(bytes, source),
    countBytes: (bytes, source) => admission.countBytes(bytes, source),
    admit: (transaction, from, checks) => intake.admit(transaction, from, checks),
    lowerAfterNonce: (hash, afterNonce) => index.lowerAfterNonce(hash, afterNonce),
    isEmpty: () => index.size().count === 0,

    async *candidates(limits) {
      const selected = index.selectInOrder(limits, monotonicMs(), arrivals.earliest());
      for (const portion of inPortions(selected, portionLimits)) {
        yield await read(portion);
      }
    },

    remove: (included, rejected) => remove(included, rejected),

    async sweep() {
      const now = nowMs();
      const expired = [...index.entries()].filter(({ expiresMs }) => expiresMs < now);
      const reasons = expired.map(({ hash, expiresMs }) => [hash, whyExpired(expiresMs)] as const);
      await remove([], new Map(reasons), "expired");
      if (now - lastDeletionMs >= deleteEveryMs) {
        lastDeletionMs = now;
        await store.deleteOldRejections(now - retainRejectedMs);
      }
    },

    stats() {
      const { count, bytes } = index.size();
      return { count, bytes, largestSource: fractionOfPool(index.largestSource()), refused: admission.refused };
    },
  };
}

/** Loads stored transactions into the index; returns the receive time of the latest one, 0 if there is none. */
async function load(
  { store, ...clocks }: MempoolDeps,
  index: MempoolIndex,
  removals: MempoolRemovals,
): Promise<number> {
  const [nowMs, monotonicMs] = [clocks.nowMs(), clocks.monotonicMs()];
  let latestMs = 0;
  const stored = await store.mempool.oldestPending(Number.MAX_SAFE_INTEGER);
  const inBlocks = await store.included(stored.map(({ hash }) => hash));
  for (const row of stored) {
    if (inBlocks.has(row.hash)) {
      removals.include(row.hash);
    } else {
      // The predecessor may have entered a block since the transaction was stored.
      const lastNonce = row.afterNonce === undefined ? undefined : await store.lastNonce(row.sender);
      const entry = { ...row, afterNonce: unlessIncluded(row.afterNonce, lastNonce) };
      index.reserve(entry);
      // Converts the stored time to the monotonic clock. A clock that was set may yield any value, so it is clamped.
      const waitedMs = Math.min(maxPredecessorWaitMs, Math.max(0, nowMs - entry.receivedMs));
      index.add(entry, monotonicMs - waitedMs);
      latestMs = Math.max(latestMs, entry.receivedMs);
    }
  }
  await removals.store();
  return latestMs;
}

function whyExpired(expiresMs: number): string {
  return `The transaction has expired: it was in no block by ${new Date(expiresMs).toISOString()}.`;
}
