/**
 * Counts requests by address. Each address has a token bucket; the buckets live in a least-recently-used cache, so that
 * a flood of addresses pushes out old ones instead of filling the memory.
 */
import { TokenBucket } from "limiter";
import { LRUCache } from "lru-cache";
import { Failure } from "../errors.js";

const windowMs = 60_000;
const maxAddresses = 50_000;

/** Counts of the limiter. */
export interface RateLimitCounts {
  /** Addresses counted at present. */
  readonly totalIps: number;
  /** Of those, addresses that are over their limit. */
  readonly blockedIps: number;
}

/** The limiter. */
export interface RateLimit {
  /**
   * Counts a request.
   *
   * @throws Failure RATE_LIMITED with the seconds to wait.
   */
  count(address: string): void;
  counts(): RateLimitCounts;
}

/** A limiter of so many requests a minute for each address; 0 limits nothing. */
export function createRateLimit(perMinute: number): RateLimit {
  const buckets = new LRUCache<string, TokenBucket>({ max: maxAddresses });

  function count(address: string): void {
    if (perMinute === 0) {
      return;
    }
    let bucket = buckets.get(address);
    if (bucket === undefined) {
      bucket = new TokenBucket({ bucketSize: perMinute, tokensPerInterval: perMinute, interval: windowMs });
      bucket.content = perMinute;
      buckets.set(address, bucket);
    }
    if (!bucket.tryRemoveTokens(1)) {
      const retryAfterS = Math.max(1, Math.ceil(bucket.getWaitTime(1) / 1000));
      throw new Failure("RATE_LIMITED", `Too many requests; try again in ${retryAfterS} s.`, retryAfterS);
    }
  }

  /** Looks at every bucket; statistics are asked for seldom. */
  function counts(): RateLimitCounts {
    let totalIps = 0;
    let blockedIps = 0;
    for (const bucket of buckets.values()) {
      bucket.drip();
      // A bucket that is full again counts nothing any more.
      totalIps += bucket.content < perMinute ? 1 : 0;
      blockedIps += bucket.content < 1 ? 1 : 0;
    }
    return { totalIps, blockedIps };
  }

  return { count, counts };
}
