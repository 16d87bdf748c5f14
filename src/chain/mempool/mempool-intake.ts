/**
 * Intake of the mempool: stores each transaction before acknowledging it, and only once under concurrent submissions.
 */
import { RpcError } from "../../rpc/errors.js";
import type { Admission, TransactionSource } from "./mempool-admission.js";
import type { MempoolIndex } from "./mempool-index.js";
import { unlessIncluded } from "./sender-order.js";
import type { Arriving, SenderArrivals } from "./sender-arrivals.js";
import type { MempoolStore, MempoolView, PendingEntry } from "../blocks/store.js";
import { encodeTransaction, type ReadTransaction } from "../transactions/transaction.js";

export interface IntakeDeps {
  readonly index: Pick<MempoolIndex, "get" | "add" | "release" | "loosen" | "hasLater">;
  readonly arrivals: Pick<SenderArrivals, "start">;
  readonly admission: Pick<Admission, "check" | "accept">;
  readonly store: Pick<MempoolStore, "insertPending">;
  readonly statusOf: MempoolView["transactionStatus"];
  /** Receive time of the latest stored transaction; 0 if there is none. */
  readonly latestMs: number;
  readonly nowMs: () => number;
  readonly monotonicMs: () => number;
  /** Removes a transaction that entered a block while it was being stored. */
  readonly onIncluded: (hash: string) => Promise<void>;
}

/** Source of a submitted transaction, and its position among those of its sender. */
export interface SubmissionSource {
  /** Undefined for the node's own transactions. */
  readonly source?: TransactionSource | undefined;
  /** Same as `afterNonce` of a pending entry. */
  readonly afterNonce?: bigint | undefined;
}

/** Checks of a transaction against the chain. */
export interface Fit {
  /** Checks that the chain accepts the transaction; returns the last nonce of its sender in a block. */
  check(): Promise<bigint | undefined>;
  /** Waits until the block that is being built or applied is complete. */
  untilBlock(): Promise<void>;
}

export interface Intake {
  /** Same as `Mempool.admit`. */
  admit(transaction: ReadTransaction, from: SubmissionSource, fit: Fit): Promise<void>;
  /** Reports that a block includes this transaction, which may be in the process of being stored. */
  include(hash: string): void;
}

/** Transaction that is being checked and stored. */
interface Arrival {
  readonly finished: Promise<void>;
  /** True once a block includes the transaction. */
  isIncluded: boolean;
}

export function createIntake(deps: IntakeDeps): Intake {
  const { index, arrivals, admission, store, statusOf, nowMs, monotonicMs, onIncluded } = deps;
  const byHash = new Map<string, Arrival>();
  let lastReceivedMs = deps.latestMs;

  function entryFor({ hash, body, signed }: ReadTransaction, { source, afterNonce }: SubmissionSource): PendingEntry {
    const { sender, nonce, timestampMs } = body;
    const sizeBytes = encodeTransaction(signed).length;
    const [receivedMs, expiresMs] = [nowMs(), Number(body.expiresMs)];
    return { hash, sender, nonce, timestampMs, sizeBytes, source: source?.address, receivedMs, expiresMs, afterNonce };
  }

  async function admitNew(
    transaction: ReadTransaction,
    from: SubmissionSource,
    fit: Fit,
    arriving: Arriving,
    isIncluded: () => boolean,
  ): Promise<void> {
    const { hash, signed, body } = transaction;
    const { source, afterNonce } = from;
    if (index.hasLater(body)) {
      // A block in production may include the later transaction; then the nonce of this one is too low.
      await fit.untilBlock();
    }
    const known = await statusOf(hash);
    if (known?.status === "rejected") {
      throw new RpcError("INVALID_REQUEST", `The transaction was rejected: ${known.reason}`);
    }
    if (known !== undefined) {
      return;
    }
    const checked = entryFor(transaction, from);
    admission.check(transaction, checked, source);
    const lastNonce = await fit.check();
    await arriving.untilEarlier();
    if (isIncluded()) {
      return;
    }
    // Receive times strictly increase, so that loading by time restores the order of arrival.
    lastReceivedMs = Math.max(nowMs(), lastReceivedMs + 1);
    const entry = { ...checked, receivedMs: lastReceivedMs, afterNonce: unlessIncluded(afterNonce, lastNonce) };
    admission.accept(transaction, entry, source);
    try {
      const stored = store.insertPending(entry, encodeTransaction(signed));
      arriving.handOver();
      await stored;
    } catch (error) {
      index.release(entry);
      throw error;
    }
    index.add(entry, monotonicMs());
    if (isIncluded()) {
      await onIncluded(hash);
    }
  }

  return {
    async admit(transaction, from, fit) {
      const { hash, body } = transaction;
      // Wait for a concurrent submission of the same transaction to finish, then try again.
      for (let other = byHash.get(hash); other !== undefined; other = byHash.get(hash)) {
        await other.finished.catch(() => undefined);
      }
      if (index.get(hash) !== undefined) {
        index.loosen(hash, from.afterNonce);
        return;
      }
      const arriving = arrivals.start(body);
      const finished = Promise.resolve()
        .then(() => admitNew(transaction, from, fit, arriving, () => arrival.isIncluded))
        .finally(() => {
          byHash.delete(hash);
          arriving.end();
        });
      const arrival: Arrival = { finished, isIncluded: false };
      byHash.set(hash, arrival);
      await finished;
    },

    include(hash) {
      const arrival = byHash.get(hash);
      if (arrival !== undefined) {
        arrival.isIncluded = true;
      }
    },
  };
}
