/**
 * Intake of the mempool: checks and stores submitted transactions. A submission resolves once the transaction is
 * stored. Concurrent submissions of the same transaction store it once.
 */
import { RpcError } from "../../rpc/errors.js";
import type { Admission, TransactionSource } from "./mempool-admission.js";
import type { MempoolIndex } from "./mempool-index.js";
import { unlessIncluded } from "./sender-order.js";
import type { Arrival, SenderArrivals } from "./sender-arrivals.js";
import type { MempoolStore, MempoolView, PendingEntry } from "../blocks/store.js";
import { encodeTransaction, type VerifiedTransaction } from "../transactions/transaction.js";

export interface IntakeDeps {
  readonly index: Pick<MempoolIndex, "get" | "add" | "release" | "lowerAfterNonce" | "hasLater">;
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

/** Checks of one transaction against the chain. */
export interface ChainChecks {
  /** Checks that the next block could include the transaction; returns the last nonce of its sender in a block. */
  check(): Promise<bigint | undefined>;
  /** Waits until the block that is being built or applied is complete. */
  untilBlock(): Promise<void>;
}

export interface Intake {
  /** Same as `Mempool.admit`. */
  admit(transaction: VerifiedTransaction, from: SubmissionSource, checks: ChainChecks): Promise<void>;
  /** Records that a block includes this transaction, which may be in the process of being stored. */
  include(hash: string): void;
}

/** Submission that is being checked and stored. */
interface Submission {
  readonly finished: Promise<void>;
  /** True once a block includes the transaction. */
  isIncluded: boolean;
}

export function createIntake(deps: IntakeDeps): Intake {
  const { index, arrivals, admission, store, statusOf, nowMs, monotonicMs, onIncluded } = deps;
  const submissions = new Map<string, Submission>();
  let lastReceivedMs = deps.latestMs;

  function entryFor(
    { hash, body, signed }: VerifiedTransaction,
    { source, afterNonce }: SubmissionSource,
  ): PendingEntry {
    const { sender, nonce, timestampMs } = body;
    const sizeBytes = encodeTransaction(signed).length;
    const [receivedMs, expiresMs] = [nowMs(), Number(body.expiresMs)];
    return { hash, sender, nonce, timestampMs, sizeBytes, source: source?.address, receivedMs, expiresMs, afterNonce };
  }

  async function admitNew(
    transaction: VerifiedTransaction,
    from: SubmissionSource,
    checks: ChainChecks,
    arrival: Arrival,
    isIncluded: () => boolean,
  ): Promise<void> {
    const { hash, signed, body } = transaction;
    const { source, afterNonce } = from;
    if (index.hasLater(body)) {
      // A block in production may include the later transaction; then the nonce of this one is too low.
      await checks.untilBlock();
    }
    const info = await statusOf(hash);
    if (info?.status === "rejected") {
      throw new RpcError("INVALID_REQUEST", `The transaction was rejected: ${info.reason}`);
    }
    if (info !== undefined) {
      return;
    }
    const candidate = entryFor(transaction, from);
    admission.check(transaction, candidate, source);
    const lastNonce = await checks.check();
    await arrival.untilEarlier();
    if (isIncluded()) {
      return;
    }
    // Receive times strictly increase, so that loading by time restores the order of arrival.
    lastReceivedMs = Math.max(nowMs(), lastReceivedMs + 1);
    const entry = { ...candidate, receivedMs: lastReceivedMs, afterNonce: unlessIncluded(afterNonce, lastNonce) };
    admission.accept(transaction, entry, source);
    try {
      const stored = store.insertPending(entry, encodeTransaction(signed));
      arrival.handOver();
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
    async admit(transaction, from, checks) {
      const { hash, body } = transaction;
      // Wait for a concurrent submission of the same transaction to finish, then try again.
      for (let other = submissions.get(hash); other !== undefined; other = submissions.get(hash)) {
        await other.finished.catch(() => undefined);
      }
      if (index.get(hash) !== undefined) {
        index.lowerAfterNonce(hash, from.afterNonce);
        return;
      }
      const arrival = arrivals.start(body);
      const finished = Promise.resolve()
        .then(() => admitNew(transaction, from, checks, arrival, () => submission.isIncluded))
        .finally(() => {
          submissions.delete(hash);
          arrival.end();
        });
      const submission: Submission = { finished, isIncluded: false };
      submissions.set(hash, submission);
      await finished;
    },

    include(hash) {
      const submission = submissions.get(hash);
      if (submission !== undefined) {
        submission.isIncluded = true;
      }
    },
  };
}
