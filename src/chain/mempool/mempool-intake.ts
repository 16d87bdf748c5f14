/**
 * Intake of the mempool: checks and stores submitted transactions. A submission resolves once the transaction is
 * stored. Concurrent submissions of the same transaction store it once. Those of a sender are stored in nonce order, so
 * a killed process leaves no gap.
 */
import { toBinary } from "@bufbuild/protobuf";
import { TransactionSchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { RpcError } from "../../rpc/errors.js";
import type { Admission, TransactionSource } from "./mempool-admission.js";
import { type MempoolIndex, unlessIncluded } from "./mempool-index.js";
import type { MempoolView, PendingEntry } from "../blocks/store-types.js";
import type { MempoolStore } from "../blocks/mempool-store.js";
import type { VerifiedTransaction } from "../transactions/transaction.js";

export interface IntakeDeps {
  readonly index: MempoolIndex;
  readonly admission: Admission;
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

/** Submission that is being checked and stored. */
interface Submission {
  readonly transaction: VerifiedTransaction;
  /** Resolves once the transaction is passed to the database, which stores in that order, or left admission. */
  readonly handedOver: Promise<void>;
  handOver(): void;
  isHandedOver: boolean;
  /** Resolves once the transaction is in the mempool, or was rejected. */
  finished: Promise<void>;
  /** True once a block includes the transaction. */
  isIncluded: boolean;
}

export function createIntake(deps: IntakeDeps) {
  const { index, admission, store, statusOf, nowMs, monotonicMs, onIncluded } = deps;
  const submissions = new Map<string, Submission>();
  let lastReceivedMs = deps.latestMs;

  function startSubmission(transaction: VerifiedTransaction): Submission {
    let resolve = (): void => undefined;
    const submission: Submission = {
      transaction,
      handedOver: new Promise<void>((done) => (resolve = done)),
      handOver() {
        submission.isHandedOver = true;
        resolve();
      },
      ...{ isHandedOver: false, finished: Promise.resolve(), isIncluded: false },
    };
    submissions.set(transaction.hash, submission);
    return submission;
  }

  /** Waits until each earlier transaction of the sender was passed to the database or left admission. */
  async function untilEarlier({ sender, nonce }: Pick<PendingEntry, "sender" | "nonce">): Promise<void> {
    const findEarlier = (): Submission | undefined =>
      [...submissions.values()].find(
        ({ transaction: { body }, isHandedOver }) => body.sender === sender && body.nonce < nonce && !isHandedOver,
      );
    for (let other = findEarlier(); other !== undefined; other = findEarlier()) {
      await other.handedOver;
    }
  }

  async function admitNew(submission: Submission, from: SubmissionSource, checks: ChainChecks): Promise<void> {
    const { transaction } = submission;
    const { hash, signed, body } = transaction;
    const { sender, nonce, timestampMs } = body;
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
    const bytes = toBinary(TransactionSchema, signed);
    const candidate = {
      ...{ hash, sender, nonce, timestampMs, sizeBytes: bytes.length, source: source?.address },
      ...{ receivedMs: nowMs(), expiresMs: Number(body.expiresMs), afterNonce },
    };
    const isExempt = source?.isExempt !== false;
    admission.check(transaction, candidate, isExempt, false);
    const lastNonce = await checks.check();
    await untilEarlier(body);
    if (submission.isIncluded) {
      return;
    }
    // Receive times strictly increase, so that loading by time restores the order of arrival.
    lastReceivedMs = Math.max(nowMs(), lastReceivedMs + 1);
    const entry = { ...candidate, receivedMs: lastReceivedMs, afterNonce: unlessIncluded(afterNonce, lastNonce) };
    admission.check(transaction, entry, isExempt, true);
    try {
      const stored = store.insertPending(entry, bytes);
      submission.handOver();
      await stored;
    } catch (error) {
      index.release(entry);
      throw error;
    }
    index.add(entry, monotonicMs());
    if (submission.isIncluded) {
      await onIncluded(hash);
    }
  }

  return {
    /**
     * Admits a transaction, unless it is pending or in a block already. Resolves once the transaction is stored.
     *
     * @throws RpcError INVALID_REQUEST if it was rejected before; PERMISSION_DENIED, OVERLOADED, RATE_LIMITED
     */
    admit: async (transaction: VerifiedTransaction, from: SubmissionSource, checks: ChainChecks): Promise<void> => {
      const { hash } = transaction;
      // Wait for a concurrent submission of the same transaction to finish, then try again.
      for (let other = submissions.get(hash); other !== undefined; other = submissions.get(hash)) {
        await other.finished.catch(() => undefined);
      }
      if (index.get(hash) !== undefined) {
        index.lowerAfterNonce(hash, from.afterNonce);
        return;
      }
      const submission = startSubmission(transaction);
      submission.finished = admitNew(submission, from, checks).finally(() => {
        submissions.delete(hash);
        submission.handOver();
      });
      await submission.finished;
    },

    /** Records that a block includes this transaction, which may be in the process of being stored. */
    include(hash: string): void {
      const submission = submissions.get(hash);
      if (submission !== undefined) {
        submission.isIncluded = true;
      }
    },

    /** Returns the lowest nonce being admitted for each sender; pending transactions with higher nonces must wait. */
    earliest(): Map<string, bigint> {
      const earliest = new Map<string, bigint>();
      for (const { transaction } of submissions.values()) {
        const { sender, nonce } = transaction.body;
        const lowest = earliest.get(sender);
        earliest.set(sender, lowest !== undefined && lowest < nonce ? lowest : nonce);
      }
      return earliest;
    },
  };
}
