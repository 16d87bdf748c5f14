/**
 * Token buckets by key, for what is bounded for each address, identity or endpoint. They live in a least-recently-used
 * cache, so that a flood of keys pushes out old ones instead of filling the memory. Their clock only goes forward.
 */
import { TokenBucket } from "limiter";
import { createLruCache } from "../caches/lru-cache.js";

/** How a bucket fills. */
export interface BucketRate {
  /** Tokens of a full bucket: how many may be taken at once. */
  readonly burst: number;
  /** And how many more come in each interval. */
  readonly tokens: number;
  readonly everyMs: number;
}

/** The buckets. */
export interface TokenBuckets {
  /** The bucket of a key; a full one where there is none yet. */
  of(key: string, rate: BucketRate): TokenBucket;
  /** The bucket of a key, if there is one. */
  known(key: string): TokenBucket | undefined;
  /** All buckets at present. */
  all(): Iterable<TokenBucket>;
}

/** @param maxKeys most keys that are remembered; the bucket of a forgotten one is full. */
export function createTokenBuckets(maxKeys: number): TokenBuckets {
  const buckets = createLruCache<TokenBucket>(maxKeys);
  return {
    of(key, { burst, tokens, everyMs }) {
      let bucket = buckets.get(key);
      if (bucket === undefined) {
        bucket = new TokenBucket({ bucketSize: burst, tokensPerInterval: tokens, interval: everyMs });
        bucket.content = burst;
        buckets.set(key, bucket);
      }
      return bucket;
    },
    known: (key) => buckets.get(key),
    all: () => buckets.values(),
  };
}
