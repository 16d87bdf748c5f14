/**
 * Admission rules of the mempool: local policy, not rules of the chain. Each source has a quota, which shrinks as the
 * mempool fills, so capacity always remains for other sources. Each sender has a fixed quota. Sources and senders have
 * write rates per minute: token buckets for bytes, new programs and new leaves of the commitment tree.
 */
import type { TransactionBody } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { createTokenBuckets } from "../../base/limits/token-buckets.js";
import { RpcError } from "../../rpc/errors.js";
import type { MempoolIndex, MempoolSize } from "./mempool-index.js";
import type { PendingEntry } from "../blocks/store-types.js";
import { maxTransactionBytes, type VerifiedTransaction } from "../transactions/transaction.js";

/** Source of a transaction. */
export interface TransactionSource {
  /** IPv4 address or IPv6 /64 prefix. */
  readonly address: string;
  /** Exempt from quotas and rates. */
  readonly isExempt: boolean;
}

/** Reason to refuse a transaction: quota exceeded (`share`), rate exceeded, or sender not in the list of writers. */
export type Refusal = "share" | "rate" | "writers";

const quantities = ["bytes", "programs", "leaves"] as const;
type Quantity = (typeof quantities)[number];

/** Limit per minute on each quantity; 0 disables the limit. `leaves` are new leaves of the commitment tree. */
export type RatesPerMinute = Readonly<Record<Quantity, number>>;

const maxPool: MempoolSize = { count: 10_000, bytes: 64 * 1024 * 1024 };
/** Quota of a source: the bytes of one block, and half the number of its transactions. */
const maxOfSource: MempoolSize = { count: 500, bytes: 3 * 1024 * 1024 };
const maxOfSender: MempoolSize = { count: maxPool.count / 10, bytes: maxPool.bytes / 10 };

/** Returns the fraction of the mempool that this size takes, from 0 to 1: the larger one of count and bytes. */
export function fractionOfPool({ count, bytes }: MempoolSize): number {
  return Math.max(count / maxPool.count, bytes / maxPool.bytes);
}

/**
 * Creates the admission rules.
 *
 * @param mayWrite returns true if the sender's key may write to this node.
 */
export function createAdmission(index: MempoolIndex, perMinute: RatesPerMinute, mayWrite: (sender: string) => boolean) {
  const rates = createRates(perMinute);
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

  /** Throws RpcError OVERLOADED if the quota of an address or sender is used up. */
  function checkQuota(of: "address" | "sender", usage: MempoolSize, sizeBytes: number, limit: MempoolSize): void {
    if (!fits(usage, sizeBytes, limit)) {
      const message = `The quota of pending transactions for this ${of} is used up; try again in 1 s.`;
      throw new RpcError("OVERLOADED", message, 1);
    }
  }

  function checkSourceQuota(source: string | undefined, sizeBytes: number): void {
    const free = freeCapacity();
    const limit = { count: Math.min(maxOfSource.count, free.count), bytes: Math.min(maxOfSource.bytes, free.bytes) };
    checkQuota("address", index.usageOfSource(source), sizeBytes, limit);
  }

  return {
    /** Number of refused transactions by reason. */
    refused: refused as Readonly<Record<Refusal, number>>,

    /**
     * Checks by source and size alone whether a transaction could be admitted, before it is received. `isCounted` counts
     * its bytes, before they are decoded, so that invalid transactions count as much as valid ones.
     *
     * @throws RpcError OVERLOADED if the quota of the source is used up, RATE_LIMITED
     */
    checkSource(bytes: number, source: TransactionSource | undefined, isCounted: boolean): void {
      if (source !== undefined && !source.isExempt) {
        const { address } = source;
        countRefusal("share", () => checkSourceQuota(address, bytes));
        countRefusal("rate", () => rates([{ quantity: "bytes", of: "address", key: address, cost: bytes }], isCounted));
      }
    },

    /**
     * Checks whether a transaction may be admitted now. `isCounted` counts it in its rates and reserves capacity.
     *
     * @throws RpcError PERMISSION_DENIED, OVERLOADED, RATE_LIMITED
     */
    check({ body }: VerifiedTransaction, entry: PendingEntry, isExempt: boolean, isCounted: boolean): void {
      const { source, sender, sizeBytes } = entry;
      countRefusal("writers", () => {
        if (!mayWrite(sender)) {
          throw new RpcError(
            "PERMISSION_DENIED",
            "This node accepts transactions of listed writers only, and the sender is not listed.",
          );
        }
      });
      countRefusal("share", () => {
        if (!fits(nothing, sizeBytes, freeCapacity())) {
          throw new RpcError("OVERLOADED", "The mempool is full; try again in 5 s.", 5);
        }
        if (!isExempt) {
          checkSourceQuota(source, sizeBytes);
          checkQuota("sender", index.usageOfSender(sender), sizeBytes, maxOfSender);
        }
      });
      if (!isExempt) {
        countRefusal("rate", () => rates(amountsOf(body, entry), isCounted));
      }
      if (isCounted) {
        index.reserve(entry);
      }
    },
  };
}

export type Admission = ReturnType<typeof createAdmission>;

const nothing: MempoolSize = { count: 0, bytes: 0 };

function fits(usage: MempoolSize, sizeBytes: number, limit: MempoolSize): boolean {
  return usage.count + 1 <= limit.count && usage.bytes + sizeBytes <= limit.bytes;
}

/** Amount to count in the token bucket of a sender or source. */
interface Amount {
  readonly quantity: Quantity;
  readonly of: "sender" | "address";
  readonly key: string;
  readonly cost: number;
}

/** Returns the amounts of a transaction. Bytes of a source are already counted on arrival. */
export function amountsOf(
  { operation }: TransactionBody,
  { sender, source, sizeBytes }: Pick<PendingEntry, "sender" | "source" | "sizeBytes">,
): Amount[] {
  const operationCase = operation.case === undefined ? undefined : operation.value.operation.case;
  const programs = Number(operationCase === "createProgram");
  const leaves = Number(operationCase === "addCommitment");
  const costs = { bytes: sizeBytes, programs, leaves };
  return quantities.flatMap((quantity) => {
    const cost = costs[quantity];
    const ofSender = { quantity, of: "sender", key: sender, cost } as const;
    return source === undefined || quantity === "bytes"
      ? [ofSender]
      : [ofSender, { quantity, of: "address", key: source, cost }];
  });
}

const maxBuckets = 100_000;
const labels = { bytes: "bytes", programs: "new programs", leaves: "new commitments" } as const;
/** Minimum burst of each bucket: a full bucket admits the largest possible transaction, even at a lower rate. */
const minBurst: RatesPerMinute = { bytes: maxTransactionBytes + 1_024, programs: 1, leaves: 1 };

/**
 * Creates full token buckets, and the function that checks amounts against them. The function counts the amounts if
 * `isCounted` is true and all of them are within their rates. It throws RpcError RATE_LIMITED with the seconds to wait.
 */
export function createRates(perMinute: RatesPerMinute): (amounts: readonly Amount[], isCounted: boolean) => void {
  const buckets = createTokenBuckets(maxBuckets);
  return (amounts, isCounted) => {
    const limited = amounts
      .filter(({ quantity, cost }) => perMinute[quantity] > 0 && cost > 0)
      .map((amount) => {
        const tokens = perMinute[amount.quantity];
        const rate = { burst: Math.max(tokens, minBurst[amount.quantity]), tokens, everyMs: 60_000 };
        return { ...amount, bucket: buckets.of(`${amount.quantity} ${amount.key}`, rate) };
      });
    for (const { quantity, of, cost, bucket } of limited) {
      const waitMs = bucket.getWaitTime(cost);
      if (waitMs > 0) {
        const retryAfterS = Math.ceil(waitMs / 1000);
        const message = `Too many ${labels[quantity]} of this ${of} in a minute; try again in ${retryAfterS} s.`;
        throw new RpcError("RATE_LIMITED", message, retryAfterS);
      }
    }
    if (isCounted) {
      limited.forEach(({ cost, bucket }) => bucket.tryRemoveTokens(cost));
    }
  };
}
