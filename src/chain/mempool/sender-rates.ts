/**
 * What a sender, and an origin, may write in a minute. Each has a bucket for bytes, one for new programs and one for new
 * leaves of the commitment tree.
 */
import type { TokenBucket } from "limiter";
import type { TransactionBody } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { createTokenBuckets } from "../../base/limits/token-buckets.js";
import { RpcError } from "../../rpc/errors.js";
import { maxTransactionBytes } from "../transactions/transaction.js";

/** What is counted. */
export type Counted = "bytes" | "programs" | "leaves";

/** Most of each in a minute; 0 is no limit. */
export type RatesPerMinute = Readonly<Record<Counted, number>>;

/** Whom it is counted for. */
export interface Writer {
  readonly sender: string;
  /** Undefined where there is none. */
  readonly origin: string | undefined;
}

/** The counters. */
export interface SenderRates {
  /**
   * Checks that so many bytes of an origin would be counted now.
   *
   * @throws Failure RATE_LIMITED with the seconds to wait.
   */
  announce(origin: string, bytes: number): void;
  /**
   * Counts bytes of an origin, before they are looked at: what is no transaction costs as much as what is one.
   *
   * @throws Failure RATE_LIMITED with the seconds to wait.
   */
  arrive(origin: string, bytes: number): void;
  /**
   * Checks that a transaction may be taken now.
   *
   * @throws Failure RATE_LIMITED with the seconds to wait.
   */
  check(writer: Writer, costs: RatesPerMinute): void;
  /** Checks it, and counts the transaction. */
  take(writer: Writer, costs: RatesPerMinute): void;
}

const minuteMs = 60_000;
const maxBuckets = 100_000;
const kinds = ["bytes", "programs", "leaves"] as const;
const words = { bytes: "bytes", programs: "new programs", leaves: "new commitments" } as const;
/** The largest single transaction passes once its bucket is full, however low the rate is. */
const largest: RatesPerMinute = { bytes: maxTransactionBytes + 1_024, programs: 1, leaves: 1 };

/** What a transaction counts as. */
export function costsOf({ operation }: TransactionBody, sizeBytes: number): RatesPerMinute {
  const made = operation.case === undefined ? undefined : operation.value.operation.case;
  return { bytes: sizeBytes, programs: Number(made === "createProgram"), leaves: Number(made === "addCommitment") };
}

interface Count {
  readonly kind: Counted;
  readonly whose: "sender" | "address";
  readonly cost: number;
  readonly bucket: TokenBucket;
}

/** Builds counters that are all at nothing. */
export function createSenderRates(perMinute: RatesPerMinute): SenderRates {
  const buckets = createTokenBuckets(maxBuckets);

  function bucketOf(kind: Counted, key: string): TokenBucket {
    const tokens = perMinute[kind];
    return buckets.of(`${kind} ${key}`, { burst: Math.max(tokens, largest[kind]), tokens, everyMs: minuteMs });
  }

  /** The buckets that a transaction is counted in. */
  function* counted({ sender, origin }: Writer, costs: RatesPerMinute): Generator<Count> {
    for (const kind of kinds) {
      if (perMinute[kind] > 0 && costs[kind] > 0) {
        yield { kind, whose: "sender", cost: costs[kind], bucket: bucketOf(kind, sender) };
        // The bytes of an origin are counted when they arrive.
        if (origin !== undefined && kind !== "bytes") {
          yield { kind, whose: "address", cost: costs[kind], bucket: bucketOf(kind, origin) };
        }
      }
    }
  }

  function checkOne({ kind, whose, cost, bucket }: Count): void {
    const waitMs = bucket.getWaitTime(cost);
    if (waitMs > 0) {
      const retryAfterS = Math.ceil(waitMs / 1000);
      const message = `Too many ${words[kind]} of this ${whose} in a minute; try again in ${retryAfterS} s.`;
      throw new RpcError("RATE_LIMITED", message, retryAfterS);
    }
  }

  function check(writer: Writer, costs: RatesPerMinute): void {
    for (const one of counted(writer, costs)) {
      checkOne(one);
    }
  }

  function announce(origin: string, bytes: number): void {
    if (perMinute.bytes > 0) {
      checkOne({ kind: "bytes", whose: "address", cost: bytes, bucket: bucketOf("bytes", origin) });
    }
  }

  return {
    announce,
    arrive(origin, bytes) {
      announce(origin, bytes);
      if (perMinute.bytes > 0) {
        bucketOf("bytes", origin).tryRemoveTokens(bytes);
      }
    },
    check,
    take(writer, costs) {
      check(writer, costs);
      for (const { cost, bucket } of counted(writer, costs)) {
        bucket.tryRemoveTokens(cost);
      }
    },
  };
}
