/**
 * Admission rules of the mempool: local policy, not rules of the chain. Each source has a quota, which shrinks as the
 * mempool fills, so capacity always remains for other sources. Each sender has a fixed quota.
 */
import { RpcError } from "../../rpc/errors.js";
import type { MempoolIndex } from "./mempool-index.js";
import { costsOf, type SenderRates } from "./sender-rates.js";
import type { MempoolSize, PendingEntry } from "../blocks/store.js";
import type { VerifiedTransaction } from "../transactions/transaction.js";

/** Source of a transaction. */
export interface TransactionSource {
  /** IPv4 address or IPv6 /64 prefix. */
  readonly address: string;
  /** Exempt from quotas and rates. */
  readonly isExempt: boolean;
}

/** Reason to refuse a transaction: quota exceeded (`share`), rate exceeded, or sender not in the list of writers. */
export type Refusal = "share" | "rate" | "writers";

export interface AdmissionDeps {
  readonly index: Pick<MempoolIndex, "size" | "usageOfSource" | "usageOfSender" | "reserve">;
  readonly rates: SenderRates;
  /** Returns true if the sender's key may write to this node. */
  readonly mayWrite: (sender: string) => boolean;
}

export interface Admission {
  /** Number of refused transactions by reason. */
  readonly refused: Readonly<Record<Refusal, number>>;
  /**
   * Checks by source and size alone whether a transaction could be admitted, before it is received.
   *
   * @throws RpcError OVERLOADED if the quota of the source is used up, RATE_LIMITED
   */
  precheck(bytes: number, source: TransactionSource | undefined): void;
  /**
   * Makes the same check, and counts the bytes of a transaction in the rate of its source, before it is decoded.
   *
   * @throws RpcError OVERLOADED if the quota of the source is used up, RATE_LIMITED
   */
  countBytes(bytes: number, source: TransactionSource | undefined): void;
  /**
   * Checks whether a transaction may be admitted now.
   *
   * @throws RpcError PERMISSION_DENIED, OVERLOADED, RATE_LIMITED
   */
  check(transaction: VerifiedTransaction, entry: PendingEntry, source: TransactionSource | undefined): void;
  /** Repeats the check, counts the transaction in its rates and reserves capacity. */
  accept(transaction: VerifiedTransaction, entry: PendingEntry, source: TransactionSource | undefined): void;
}

const maxPool: MempoolSize = { count: 10_000, bytes: 64 * 1024 * 1024 };
/** Quota of a source: the bytes of one block, and half the number of its transactions. */
const maxOfSource: MempoolSize = { count: 500, bytes: 3 * 1024 * 1024 };
const maxOfSender: MempoolSize = { count: maxPool.count / 10, bytes: maxPool.bytes / 10 };

/** Returns the fraction of the mempool that this size takes, from 0 to 1: the larger one of count and bytes. */
export function fractionOfPool({ count, bytes }: MempoolSize): number {
  return Math.max(count / maxPool.count, bytes / maxPool.bytes);
}

/** Creates the admission rules. */
export function createAdmission({ index, rates, mayWrite }: AdmissionDeps): Admission {
  const refused: Record<Refusal, number> = { share: 0, rate: 0, writers: 0 };

  /** Runs a check, and counts the transaction as refused if the check throws. */
  function countRefusal(reason: Refusal, check: () => void): void {
    try {
      check();
    } catch (error) {
      refused[reason]++;
      throw error;
    }
  }

  function freeCapacity(): MempoolSize {
    const { count, bytes } = index.size();
    return { count: maxPool.count - count, bytes: maxPool.bytes - bytes };
  }

  function checkSourceQuota(source: string | undefined, sizeBytes: number): void {
    if (!fits(index.usageOfSource(source), sizeBytes, minOf(maxOfSource, freeCapacity()))) {
      throw new RpcError(
        "OVERLOADED",
        "The quota of pending transactions for this address is used up; try again in 1 s.",
        1,
      );
    }
  }

  function checkQuotas({ source, sender, sizeBytes }: PendingEntry, isExempt: boolean): void {
    if (!fits(nothing, sizeBytes, freeCapacity())) {
      throw new RpcError("OVERLOADED", "The mempool is full; try again in 5 s.", 5);
    }
    if (!isExempt) {
      checkSourceQuota(source, sizeBytes);
    }
    if (!isExempt && !fits(index.usageOfSender(sender), sizeBytes, maxOfSender)) {
      throw new RpcError(
        "OVERLOADED",
        "The quota of pending transactions for this sender is used up; try again in 1 s.",
        1,
      );
    }
  }

  /** Applies all rules to a transaction; `applyRates` checks or counts its rates. */
  function applyRules(
    { body }: VerifiedTransaction,
    entry: PendingEntry,
    source: TransactionSource | undefined,
    applyRates: SenderRates["check"],
  ): void {
    const isExempt = source === undefined || source.isExempt;
    countRefusal("writers", () => {
      if (!mayWrite(entry.sender)) {
        throw new RpcError(
          "PERMISSION_DENIED",
          "This node accepts transactions of listed writers only, and the sender is not listed.",
        );
      }
    });
    countRefusal("share", () => checkQuotas(entry, isExempt));
    if (!isExempt) {
      countRefusal("rate", () => applyRates(entry, costsOf(body, entry.sizeBytes)));
    }
  }

  /** Applies the rules that need no transaction; `applyRate` checks or counts the byte rate of the source. */
  function applySourceRules(
    bytes: number,
    source: TransactionSource | undefined,
    applyRate: SenderRates["precheck"],
  ): void {
    if (source !== undefined && !source.isExempt) {
      countRefusal("share", () => checkSourceQuota(source.address, bytes));
      countRefusal("rate", () => applyRate(source.address, bytes));
    }
  }

  return {
    refused,
    precheck: (bytes, source) => applySourceRules(bytes, source, rates.precheck),
    countBytes: (bytes, source) => applySourceRules(bytes, source, rates.countBytes),
    check: (transaction, entry, source) => applyRules(transaction, entry, source, rates.check),
    accept(transaction, entry, source) {
      applyRules(transaction, entry, source, rates.count);
      index.reserve(entry);
    },
  };
}

const nothing: MempoolSize = { count: 0, bytes: 0 };

function fits(usage: MempoolSize, sizeBytes: number, limit: MempoolSize): boolean {
  return usage.count + 1 <= limit.count && usage.bytes + sizeBytes <= limit.bytes;
}

function minOf(a: MempoolSize, b: MempoolSize): MempoolSize {
  return { count: Math.min(a.count, b.count), bytes: Math.min(a.bytes, b.bytes) };
}
