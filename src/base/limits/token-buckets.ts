/**
 * Token buckets by key, for limits per address, identity or endpoint. An LRU cache stores them, so that a flood of keys
 * evicts old buckets and does not exhaust memory. Their clock is monotonic.
 */
import { TokenBucket } from "limiter";
import { createLruCache } from "../caches/lru-cache.js";

/** Size and refill rate of a bucket. */
export interface BucketRate {
  /** Capacity of the bucket in tokens, which a burst can use at once. */
  readonly burst: number;
  /** Tokens added per interval of `everyMs`. */
  readonly tokens: number;
  readonly everyMs: number;
}

/**
 * Creates an empty set of buckets.
 *
 * @param maxKeys limit on buckets; the least recently used one is evicted and starts full again.
 */
export function createTokenBuckets(maxKeys: number) {
  const buckets = createLruCache<TokenBucket>(maxKeys);
  return {
    /** Returns the bucket of a key; creates a full one if there is none. */
    of(key: string, { burst, tokens, everyMs }: BucketRate): TokenBucket {
      let bucket = buckets.get(key);
      if (bucket === undefined) {
        bucket = new TokenBucket({ bucketSize: burst, tokensPerInterval: tokens, interval: everyMs });
        bucket.content = burst;
        buckets.set(key, bucket);
      }
      return bucket;
    },
    find: (key: string) => buckets.get(key),
    all: () => buckets.values(),
  };
}
