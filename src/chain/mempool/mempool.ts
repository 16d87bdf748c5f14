/**
 * Mempool of a node that writes. Transactions are stored on admission; memory holds an index without their bytes. Only
 * this process writes to the mempool.
 */
import type { Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { type SelectionLimits, inPortions } from "./fair-queue.js";
import { createAdmission, fractionOfPool, type RatesPerMinute, type TransactionSource } from "./mempool-admission.js";
import { createIntake } from "./mempool-intake.js";
import {
  createMempoolIndex,
  type IndexEntry,
  lacksPredecessor,
  maxPredecessorWaitMs,
  type RelayTarget,
  type RemovalCause,
  unlessIncluded,
} from "./mempool-index.js";
import { findTransactionStatus } from "../blocks/mempool-store.js";
import type { ChainStore } from "../blocks/store.js";
import type { MempoolView, Rejection } from "../blocks/store-types.js";

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

/** Limits on transactions whose bytes are read at once. */
const portionLimits: SelectionLimits = { count: 100, bytes: 1024 * 1024 };
/** Time for which a rejection is retained after its transaction expires. */
const retainRejectedMs = 3_600_000;
/** Interval between deletions of old rejections. */
const deleteEveryMs = 60_000;
/** Delay after the first temporary rejection by the target of a relay; doubles up to four times, to 16 s. */
const firstDelayMs = 1_000;
const maxDoublings = 4;

export type Mempool = Awaited<ReturnType<typeof openMempool>>;

/**
 * Opens the mempool. Removes transactions that are in a block already: an earlier process stopped before it removed
 * them.
 */
export async function openMempool(deps: MempoolDeps) {
  const { nowMs, monotonicMs } = deps;
  const { mempool: store, ...blocks } = deps.store;
  const index = createMempoolIndex();
  const admission = createAdmission(index, deps.rates, deps.mayWrite);
  /** Removals that are not stored in the database yet. */
  const included = new Set<string>();
  const rejected = new Map<string, Rejection>();
  let lastDeletionMs = 0;

  /** Stores removals. After an error, the next call stores the same removals again. */
  async function storeRemovals(): Promise<void> {
    const removals = { included: [...included], rejected: [...rejected.values()] };
    if (removals.included.length + removals.rejected.length === 0) {
      return;
    }
    try {
      await store.remove(removals);
    } catch (error) {
      deps.onError(error);
      return;
    }
    removals.included.forEach((hash) => included.delete(hash));
    removals.rejected.forEach(({ hash }) => rejected.delete(hash));
  }

  async function remove(
    includedHashes: readonly string[],
    reasons: ReadonlyMap<string, string>,
    cause: RemovalCause = "rejected",
  ): Promise<void> {
    for (const hash of includedHashes) {
      intake.include(hash);
      if (index.remove(hash, "included") !== undefined) {
        included.add(hash);
      }
    }
    for (const [hash, reason] of reasons) {
      const entry = index.remove(hash, cause);
      if (entry !== undefined) {
        rejected.set(hash, { hash, reason, rejectedMs: nowMs(), expiresMs: entry.expiresMs });
        deps.onRejected?.({ hash, reason });
      }
    }
    await storeRemovals();
  }

  /** Reads transactions that are still pending. Rejects those whose stored bytes were changed by another process. */
  async function read(entries: readonly IndexEntry[]) {
    const stored = await store.readPending(entries.map(({ hash }) => hash));
    const transactions: { readonly hash: string; readonly transaction: Transaction }[] = [];
    const unreadable = new Map<string, string>();
    for (const { hash } of entries.filter((entry) => index.get(entry.hash) !== undefined)) {
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

  /** Loads stored transactions into the index; returns the receive time of the latest one, 0 if there is none. */
  async function load(): Promise<number> {
    const [loadedMs, loadedMonotonicMs] = [nowMs(), monotonicMs()];
    let latestMs = 0;
    const stored = await store.oldestPending(Number.MAX_SAFE_INTEGER);
    const inBlocks = await blocks.included(stored.map(({ hash }) => hash));
    for (const row of stored) {
      if (inBlocks.has(row.hash)) {
        included.add(row.hash);
        continue;
      }
      // The predecessor may have entered a block since the transaction was stored.
      const lastNonce = row.afterNonce === undefined ? undefined : await blocks.lastNonce(row.sender);
      const entry = { ...row, afterNonce: unlessIncluded(row.afterNonce, lastNonce) };
      index.reserve(entry);
      // Converts the stored time to the monotonic clock. A clock that was set may yield any value, so it is clamped.
      const waitedMs = Math.min(maxPredecessorWaitMs, Math.max(0, loadedMs - entry.receivedMs));
      index.add(entry, loadedMonotonicMs - waitedMs);
      latestMs = Math.max(latestMs, entry.receivedMs);
    }
    await storeRemovals();
    return latestMs;
  }

  const view: MempoolView = {
    transactionStatus: (hash) =>
      findTransactionStatus({
        isPending: () => index.get(hash) !== undefined,
        blockNumber: () => blocks.blockOf(hash),
        rejectionReason: () => rejected.get(hash)?.reason ?? store.rejectionOf(hash),
      }),
    oldestPending: (limit) => Promise.resolve([...index.entries()].slice(0, limit)),
    pending: async (hash) => (index.get(hash) === undefined ? undefined : (await store.readPending([hash])).get(hash)),
  };

  const intake = createIntake({
    ...{ index, admission, store, latestMs: await load(), nowMs, monotonicMs },
    statusOf: (hash) => view.transactionStatus(hash),
    onIncluded: (hash) => remove([hash], new Map()),
  });

  const entriesOf = (hashes: readonly string[]): IndexEntry[] => hashes.flatMap((hash) => index.get(hash) ?? []);

  /** Returns a predicate for transactions that must wait for an earlier one of their sender, which is being admitted. */
  function createIsAfter(): (entry: IndexEntry) => boolean {
    const earliest = intake.earliest();
    return ({ sender, nonce }) => {
      const from = earliest.get(sender);
      return from !== undefined && nonce >= from;
    };
  }

  return {
    ...view,

    /** Throws RpcError OVERLOADED or RATE_LIMITED if a transaction of this size could not be admitted. */
    precheck: (bytes: number, source: TransactionSource | undefined): void =>
      admission.checkSource(bytes, source, false),

    /** Makes the same check, and counts the bytes of a transaction in the rate of its source. */
    countBytes: (bytes: number, source: TransactionSource | undefined): void =>
      admission.checkSource(bytes, source, true),

    admit: intake.admit,
    lowerAfterNonce: index.lowerAfterNonce,

    /** Yields the next transactions for a block in fair order, in small groups. Skips those that left meanwhile. */
    async *candidates(limits: SelectionLimits) {
      const now = monotonicMs();
      const isAfter = createIsAfter();
      const selected = index.select(
        limits,
        (entry, i, ofSender) => isAfter(entry) || lacksPredecessor(i, ofSender, now),
      );
      for (const portion of inPortions(selected, portionLimits)) {
        yield await read(portion);
      }
    },

    /**
     * Returns the next transactions to relay to a kind of node, in fair order. Skips those relayed to it since
     * `relayedBeforeMs`, and deferred ones with all later ones of their senders.
     */
    async toRelay(to: RelayTarget, relayedBeforeMs: number, limits: SelectionLimits) {
      const now = monotonicMs();
      const isAfter = createIsAfter();
      const selected = index.select(
        limits,
        (entry) => isAfter(entry) || entry.deferredUntilMs[to] > now,
        ({ relayedMs }) => relayedMs[to] >= relayedBeforeMs,
      );
      const afterNonces = new Map(selected.map((entry) => [entry.hash, index.predecessorOf(entry)]));
      return (await read(selected)).map((one) => ({ ...one, afterNonce: afterNonces.get(one.hash) }));
    },

    /** Records that transactions were relayed. */
    markRelayed(to: RelayTarget, hashes: readonly string[], relayedMs: number): void {
      entriesOf(hashes).forEach((entry) => (entry.relayedMs[to] = relayedMs));
    },

    /** Defers transactions, and later ones of the same senders, with exponential backoff. */
    defer(to: RelayTarget, hashes: readonly string[]): void {
      for (const entry of entriesOf(hashes)) {
        entry.deferredUntilMs[to] = monotonicMs() + firstDelayMs * 2 ** entry.refusals;
        entry.refusals = Math.min(entry.refusals + 1, maxDoublings);
      }
    },

    /**
     * Removes included transactions, and rejected ones with their reasons by hash. Never rejects: failed removals are
     * retried.
     */
    remove: (hashes: readonly string[], reasons: ReadonlyMap<string, string>): Promise<void> => remove(hashes, reasons),

    /** Rejects expired transactions, retries failed removals, and deletes old rejections. */
    async sweep(): Promise<void> {
      const now = nowMs();
      const expired = [...index.entries()].filter(({ expiresMs }) => expiresMs < now);
      await remove([], new Map(expired.map(({ hash, expiresMs }) => [hash, whyExpired(expiresMs)])), "expired");
      if (now - lastDeletionMs >= deleteEveryMs) {
        lastDeletionMs = now;
        await store.deleteOldRejections(now - retainRejectedMs);
      }
    },

    /** Returns the usage, the fraction of the mempool that the largest source takes, and refused transactions by reason. */
    stats() {
      const { count, bytes } = index.size();
      return { count, bytes, largestSource: fractionOfPool(index.largestSource()), refused: admission.refused };
    },
  };
}

function whyExpired(expiresMs: number): string {
  return `The transaction has expired: it was in no block by ${new Date(expiresMs).toISOString()}.`;
}
