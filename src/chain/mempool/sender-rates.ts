/**
 * Write rates per minute of each sender and each source. Each has token buckets for bytes, new programs and new leaves
 * of the commitment tree.
 */
import type { TokenBucket } from "limiter";
import type { TransactionBody } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { createTokenBuckets } from "../../base/limits/token-buckets.js";
import { RpcError } from "../../rpc/errors.js";
import { maxTransactionBytes } from "../transactions/transaction.js";

/** Quantity with a rate limit; `leaves` are new leaves of the commitment tree. */
export type Quantity = "bytes" | "programs" | "leaves";

/** Limit per minute on each quantity; 0 disables the limit. */
export type RatesPerMinute = Readonly<Record<Quantity, number>>;

/** Sender and source of a transaction; each has its own rates. */
export interface Writer {
  readonly sender: string;
  /** Undefined for transactions without a source. */
  readonly source: string | undefined;
}

export interface SenderRates {
  /**
   * Checks the byte rate of a source without counting the bytes.
   *
   * @throws RpcError RATE_LIMITED with the seconds to wait.
   */
  readonly precheck: (source: string, bytes: number) => void;
  /**
   * Counts bytes of a source before they are decoded, so invalid transactions count as much as valid ones.
   *
   * @throws RpcError RATE_LIMITED with the seconds to wait.
   */
  readonly countBytes: (source: string, bytes: number) => void;
  /**
   * Checks that a transaction is within all rates.
   *
   * @throws RpcError RATE_LIMITED with the seconds to wait.
   */
  readonly check: (writer: Writer, costs: RatesPerMinute) => void;
  /** Checks the rates and counts the transaction. */
  readonly count: (writer: Writer, costs: RatesPerMinute) => void;
}

const minuteMs = 60_000;
const maxBuckets = 100_000;
const quantities = ["bytes", "programs", "leaves"] as const;
const labels = { bytes: "bytes", programs: "new programs", leaves: "new commitments" } as const;
/** Minimum burst of each bucket: a full bucket admits the largest possible transaction, even at a lower rate. */
const minBurst: RatesPerMinute = { bytes: maxTransactionBytes + 1_024, programs: 1, leaves: 1 };

/** Returns the quantities that a transaction counts as. */
export function costsOf({ operation }: TransactionBody, sizeBytes: number): RatesPerMinute {
  const operationCase = operation.case === undefined ? undefined : operation.value.operation.case;
  return {
    bytes: sizeBytes,
    programs: Number(operationCase === "createProgram"),
    leaves: Number(operationCase === "addCommitment"),
  };
}

/** Amount to count in a token bucket. */
interface Count {
  readonly quantity: Quantity;
  readonly whose: "sender" | "address";
  readonly cost: number;
  readonly bucket: TokenBucket;
}

/** Creates full token buckets. */
export function createSenderRates(perMinute: RatesPerMinute): SenderRates {
  const buckets = createTokenBuckets(maxBuckets);

  function bucketOf(quantity: Quantity, key: string): TokenBucket {
    const tokens = perMinute[quantity];
    const burst = Math.max(tokens, minBurst[quantity]);
    return buckets.of(`${quantity} ${key}`, { burst, tokens, everyMs: minuteMs });
  }

  /** Yields the amounts of a transaction with their token buckets. */
  function* countsOf({ sender, source }: Writer, costs: RatesPerMinute): Generator<Count> {
    for (const quantity of quantities) {
      const cost = costs[quantity];
      if (perMinute[quantity] > 0 && cost > 0) {
        yield { quantity, whose: "sender", cost, bucket: bucketOf(quantity, sender) };
        // Bytes of a source are already counted on arrival.
        if (source !== undefined && quantity !== "bytes") {
          yield { quantity, whose: "address", cost, bucket: bucketOf(quantity, source) };
        }
      }
    }
  }

  function checkBucket({ quantity, whose, cost, bucket }: Count): void {
    const waitMs = bucket.getWaitTime(cost);
    if (waitMs > 0) {
      const retryAfterS = Math.ceil(waitMs / 1000);
      const message = `Too many ${labels[quantity]} of this ${whose} in a minute; try again in ${retryAfterS} s.`;
      throw new RpcError("RATE_LIMITED", message, retryAfterS);
    }
  }

  function check(writer: Writer, costs: RatesPerMinute): void {
    for (const count of countsOf(writer, costs)) {
      checkBucket(count);
    }
  }

  function precheck(source: string, bytes: number): void {
    if (perMinute.bytes > 0) {
      checkBucket({ quantity: "bytes", whose: "address", cost: bytes, bucket: bucketOf("bytes", source) });
    }
  }

  return {
    precheck,
    countBytes(source, bytes) {
      precheck(source, bytes);
      if (perMinute.bytes > 0) {
        bucketOf("bytes", source).tryRemoveTokens(bytes);
      }
    },
    check,
    count(writer, costs) {
      check(writer, costs);
      for (const { cost, bucket } of countsOf(writer, costs)) {
        bucket.tryRemoveTokens(cost);
      }
    },
  };
}
