/**
 * Counts requests by address. Each address has a token bucket, and so has each /64 of IPv6, which one caller has
 * whole.
 */
import type { TokenBucket } from "limiter";
import { createTokenBuckets } from "../base/limits/token-buckets.js";
import { RpcError } from "../rpc/errors.js";
import { addressPrefixOf } from "./cidr.js";

const windowMs = 60_000;
const maxAddresses = 50_000;
const unlimited: readonly string[] = [];

export interface RateLimitCounts {
  /** Addresses counted at present. */
  readonly totalIps: number;
  /** Of those, addresses that are over their limit. */
  readonly blockedIps: number;
}

export interface RateLimit {
  /**
   * Counts a request and gives the headers that tell the caller how much is left: a flat list of names and values.
   *
   * @throws Failure RATE_LIMITED with the seconds to wait.
   */
  count(address: string): readonly string[];
  /** Charges a body of so many bytes, beyond the request that was counted: a large one is worth many requests. */
  weigh(address: string, bytes: number): void;
  counts(): RateLimitCounts;
  /** What addresses were charged since this was last asked; nothing where it is not remembered. */
  takeCharged(): Charges;
  /** Charges what other processes of this node have charged. */
  hear(charges: Charges): void;
}

/** Requests that networks were charged. */
export type Charges = readonly (readonly [network: string, requests: number])[];

/** So many bytes of an answer, or of a request's body, weigh as much as a request. */
export const bytesPerRequest = 64 * 1024;

/**
 * A limiter of so many requests a minute for each address; 0 limits nothing.
 *
 * @param isShared others count with it: what it charges is remembered until somebody asks.
 */
export function createRateLimit(perMinute: number, isShared = false): RateLimit {
  let charged = new Map<string, number>();
  const buckets = createTokenBuckets(maxAddresses);
  const rate = { burst: perMinute, tokens: perMinute, everyMs: windowMs };
  const policy = `"default";q=${perMinute};w=${windowMs / 1000}`;

  function headersOf(bucket: TokenBucket): readonly string[] {
    const refilledInS = Math.ceil(((perMinute - bucket.content) * windowMs) / perMinute / 1000);
    return ["RateLimit-Policy", policy, "RateLimit", `"default";r=${Math.floor(bucket.content)};t=${refilledInS}`];
  }

  function count(address: string): readonly string[] {
    if (perMinute === 0) {
      return unlimited;
    }
    const network = addressPrefixOf(address);
    const bucket = buckets.of(network, rate);
    if (!bucket.tryRemoveTokens(1)) {
      const retryAfterS = Math.max(1, Math.ceil(bucket.getWaitTime(1) / 1000));
      const message = `Too many requests; try again in ${retryAfterS} s.`;
      throw new RpcError("RATE_LIMITED", message, retryAfterS, headersOf(bucket));
    }
    remember(network, 1);
    return headersOf(bucket);
  }

  function remember(network: string, requests: number): void {
    if (isShared) {
      charged.set(network, (charged.get(network) ?? 0) + requests);
    }
  }

  function weigh(address: string, bytes: number): void {
    const network = addressPrefixOf(address);
    const bucket = perMinute === 0 ? undefined : buckets.known(network);
    if (bucket !== undefined) {
      // It may be overdrawn: what was answered is answered, and the next request waits.
      bucket.content -= Math.floor(bytes / bytesPerRequest);
      remember(network, Math.floor(bytes / bytesPerRequest));
    }
  }

  function takeCharged(): Charges {
    const taken = [...charged];
    charged = new Map();
    return taken;
  }

  function hear(charges: Charges): void {
    for (const [network, requests] of perMinute === 0 ? [] : charges) {
      const bucket = buckets.of(network, rate);
      // It fills with the time until now before it is charged.
      bucket.drip();
      bucket.content -= requests;
    }
  }

  /** Looks at every bucket; statistics are asked for seldom. */
  function counts(): RateLimitCounts {
    let totalIps = 0;
    let blockedIps = 0;
    for (const bucket of buckets.all()) {
      bucket.drip();
      // A bucket that is full again counts nothing any more.
      totalIps += bucket.content < perMinute ? 1 : 0;
      blockedIps += bucket.content < 1 ? 1 : 0;
    }
    return { totalIps, blockedIps };
  }

  return { count, weigh, counts, takeCharged, hear };
}
