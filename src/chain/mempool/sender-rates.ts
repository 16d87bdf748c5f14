/**
 * Write rates per minute of each sender and each source. Each has token buckets for bytes, new programs and new leaves
 * of the commitment tree.
 */
import type { TokenBucket } from "limiter";
import type { TransactionBody } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { createTokenBuckets } from "../../base/limits/token-buckets.js";
import { RpcError } from "../../rpc/errors.js";
import { maxTransactionBytes } from "../transactions/transaction.js";

/** Quantity with a rate limit. */
export type Counted = "bytes" | "programs" | "leaves";

/** Limit per minute on each quantity; 0 disables the limit. */
export type RatesPerMinute = Readonly<Record<Counted, number>>;

/** Sender and source that a transaction is counted for. */
export interface Writer {
  readonly sender: string;
  /** Undefined for transactions without a source. */
  readonly source: string | undefined;
}

export interface SenderRates {
  /**
   * Checks the byte rate of a source without counting.
   *
   * @throws RpcError RATE_LIMITED with the seconds to wait.
   */
  announce(source: string, bytes: number): void;
  /**
   * Counts bytes of a source before they are decoded, so invalid transactions cost as much as valid ones.
   *
   * @throws RpcError RATE_LIMITED with the seconds to wait.
   */
  arrive(source: string, bytes: number): void;
  /**
   * Checks that a transaction is within all rates.
   *
   * @throws RpcError RATE_LIMITED with the seconds to wait.
   */
  check(writer: Writer, costs: RatesPerMinute): void;
  /** Checks the rates and counts the transaction. */
  count(writer: Writer, costs: RatesPerMinute): void;
}

const minuteMs = 60_000;
const maxBuckets = 100_000;
const kinds = ["bytes", "programs", "leaves"] as const;
const labels = { bytes: "bytes", programs: "new programs", leaves: "new commitments" } as const;
/** Minimum burst of each bucket: a full bucket admits the largest possible transaction, even at a lower rate. */
const largest: RatesPerMinute = { bytes: maxTransactionBytes + 1_024, programs: 1, leaves: 1 };

/** Returns the quantities that a transaction counts as. */
export function costsOf({ operation }: TransactionBody, sizeBytes: number): RatesPerMinute {
  const operationCase = operation.case === undefined ? undefined : operation.value.operation.case;
  return {
    bytes: sizeBytes,
    programs: Number(operationCase === "createProgram"),
    leaves: Number(operationCase === "addCommitment"),
  };
}

interface Count {
  readonly kind: Counted;
  readonly whose: "sender" | "address";
  readonly cost: number;
  readonly bucket: TokenBucket;
}

/** Creates full token buckets. */
export function createSenderRates(perMinute: RatesPerMinute): SenderRates {
  const buckets = createTokenBuckets(maxBuckets);

  function bucketOf(kind: Counted, key: string): TokenBucket {
    const tokens = perMinute[kind];
    return buckets.of(`${kind} ${key}`, { burst: Math.max(tokens, largest[kind]), tokens, everyMs: minuteMs });
  }

  /** Yields the token buckets that a transaction is counted in. */
  function* counted({ sender, source }: Writer, costs: RatesPerMinute): Generator<Count> {
    for (const kind of kinds) {
      if (perMinute[kind] > 0 && costs[kind] > 0) {
        yield { kind, whose: "sender", cost: costs[kind], bucket: bucketOf(kind, sender) };
        // Bytes of a source are already counted on arrival.
        if (source !== undefined && kind !== "bytes") {
          yield { kind, whose: "address", cost: costs[kind], bucket: bucketOf(kind, source) };
        }
      }
    }
  }

  function checkOne({ kind, whose, cost, bucket }: Count): void {
    const waitMs = bucket.getWaitTime(cost);
    if (waitMs > 0) {
      const retryAfterS = Math.ceil(waitMs / 1000);
      const message = `Too many ${labels[kind]} of this ${whose} in a minute; try again in ${retryAfterS} s.`;
      throw new RpcError("RATE_LIMITED", message, retryAfterS);
    }
  }

  function check(writer: Writer, costs: RatesPerMinute): void {
    for (const one of counted(writer, costs)) {
      checkOne(one);
    }
  }

  function announce(source: string, bytes: number): void {
    if (perMinute.bytes > 0) {
      checkOne({ kind: "bytes", whose: "address", cost: bytes, bucket: bucketOf("bytes", source) });
    }
  }

  return {
    announce,
    arrive(source, bytes) {
      announce(source, bytes);
      if (perMinute.bytes > 0) {
        bucketOf("bytes", source).tryRemoveTokens(bytes);
      }
    },
    check,
    count(writer, costs) {
      check(writer, costs);
      for (const { cost, bucket } of counted(writer, costs)) {
        bucket.tryRemoveTokens(cost);
      }
    },
  };
}
