/** Rate limiter with a token bucket per IPv4 address or IPv6 /64 prefix, since one caller has a full prefix. */
import type { TokenBucket } from "limiter";
import { createTokenBuckets } from "../base/limits/token-buckets.js";
import { RpcError } from "../rpc/errors.js";
import { addressPrefixOf } from "../base/ip-address.js";

const minuteMs = 60_000;
const maxAddresses = 50_000;
const unlimited: readonly string[] = [];

export type Charges = readonly (readonly [prefix: string, requests: number])[];

/** Number of bytes of a response or request body that cost as much as one request. */
export const bytesPerRequest = 64 * 1024;

/** Refills a bucket for the time until now, and charges it. A refill after the charge could undo the charge. */
function charge(bucket: TokenBucket, requests: number): void {
  bucket.drip();
  bucket.content -= requests;
}

/**
 * Creates a limiter of requests per window for each address; 0 disables the limit.
 *
 * @param isShared true if other processes share the limit, so that charges are recorded until they are drained.
 * @param name name of the limit in the response headers.
 */
export function createRateLimit(perWindow: number, isShared = false, windowMs = minuteMs, name = "default") {
  let charged = new Map<string, number>();
  const buckets = createTokenBuckets(maxAddresses);
  const rate = { burst: perWindow, tokens: perWindow, everyMs: windowMs };
  const policy = `"${name}";q=${perWindow};w=${windowMs / 1000}`;

  function headersOf(bucket: TokenBucket): readonly string[] {
    const refilledInS = Math.ceil(((perWindow - bucket.content) * windowMs) / perWindow / 1000);
    return ["RateLimit-Policy", policy, "RateLimit", `"${name}";r=${Math.floor(bucket.content)};t=${refilledInS}`];
  }

  function recordCharge(prefix: string, requests: number): void {
    if (isShared) {
      charged.set(prefix, (charged.get(prefix) ?? 0) + requests);
    }
  }

  return {
    /**
     * Counts a request. Returns the headers that report the remaining quota: a flat list of names and values.
     *
     * @throws RpcError RATE_LIMITED with the seconds to wait.
     */
    count(address: string): readonly string[] {
      if (perWindow === 0) {
        return unlimited;
      }
      const prefix = addressPrefixOf(address);
      const bucket = buckets.of(prefix, rate);
      if (!bucket.tryRemoveTokens(1)) {
        const retryAfterS = Math.max(1, Math.ceil(bucket.getWaitTime(1) / 1000));
        const message = `Too many requests; try again in ${retryAfterS} s.`;
        throw new RpcError("RATE_LIMITED", message, retryAfterS, headersOf(bucket));
      }
      recordCharge(prefix, 1);
      return headersOf(bucket);
    },
    /** Charges a body of this many bytes, in addition to its request: a large body costs as much as many requests. */
    chargeBytes(address: string, bytes: number): void {
      const prefix = addressPrefixOf(address);
      const bucket = buckets.find(prefix);
      if (bucket !== undefined) {
        const requests = Math.floor(bytes / bytesPerRequest);
        // The bucket may become negative, since the response is already built. The next request waits.
        charge(bucket, requests);
        recordCharge(prefix, requests);
      }
    },
    /** Returns the charges since the last call; empty if the limiter is not shared. */
    drainCharges(): Charges {
      const drained = [...charged];
      charged = new Map();
      return drained;
    },
    /** Applies charges of other processes of this node. */
    receive(charges: Charges): void {
      for (const [prefix, requests] of perWindow === 0 ? [] : charges) {
        charge(buckets.of(prefix, rate), requests);
      }
    },
    /** Counts addresses by scanning every bucket; statistics are rarely requested. */
    counts() {
      let totalIps = 0;
      let blockedIps = 0;
      for (const bucket of buckets.all()) {
        bucket.drip();
        totalIps += bucket.content < perWindow ? 1 : 0;
        blockedIps += bucket.content < 1 ? 1 : 0;
      }
      return {
        /** Addresses that have used tokens and are not full again. */
        totalIps,
        /** Addresses that are over their limit. */
        blockedIps,
      };
    },
  };
}
