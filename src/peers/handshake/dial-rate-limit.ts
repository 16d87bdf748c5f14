/**
 * Limits the rate of dials, regardless of the source of an endpoint. Any stranger can name endpoints of third parties,
 * and each dial burdens them. The limits are separate from the address book, because evicted endpoints can be added
 * again.
 */
import { type BucketRate, createTokenBuckets } from "../../base/limits/token-buckets.js";
import { CallError } from "../../rpc/channel.js";
import { addressPrefixOf } from "../../base/ip-address.js";

/** Error for a call that was not made, because the address was called too often. Says nothing about the peer. */
export class DialRateLimited extends CallError {
  constructor() {
    super("Its address was dialed too often recently.", false);
  }
}

/** Rate of connections to one IPv4 address or IPv6 /64, for endpoints without a verified peer. */
const unverifiedRate: BucketRate = { burst: 8, tokens: 1, everyMs: 10_000 };
/**
 * Rate of connections to verified endpoints. A site may have many. A limit applies, because a name may now resolve to
 * another address.
 */
const verifiedRate: BucketRate = { burst: 64, tokens: 1, everyMs: 1_000 };
/**
 * Rate of immediate dials, over all endpoints. Further dials wait for a tick of the main loop, which dials few peers.
 */
const dialBackRate: BucketRate = { burst: 32, tokens: 1, everyMs: 250 };
/** Limit on the tracked endpoints and addresses. At these rates, an entry expires before the limit is reached. */
const maxTracked = 4_096;

export type DialRateLimit = ReturnType<typeof createDialRateLimit>;

/** @param intervalMs time between two polls of a peer, in milliseconds. */
export function createDialRateLimit(intervalMs: number) {
  // Half the interval, because a tick may be early, as in the address book.
  const endpointRate: BucketRate = { burst: 1, tokens: 1, everyMs: intervalMs / 2 };
  const [endpoints, addresses] = [createTokenBuckets(maxTracked), createTokenBuckets(2 * maxTracked)];
  const dialBacks = createTokenBuckets(1).of("all", dialBackRate);
  return {
    /** Returns true and counts a dial if an endpoint without a current handshake may be dialed again. */
    tryDial: (endpoint: string): boolean => endpoints.of(endpoint, endpointRate).tryRemoveTokens(1),
    /** Returns true and counts a dial if an endpoint may be dialed at once, after a handshake named it. */
    tryDialBack: (endpoint: string): boolean =>
      (endpoints.find(endpoint)?.getWaitTime(1) ?? 0) === 0 && dialBacks.tryRemoveTokens(1),
    /**
     * Counts a new connection to an address.
     *
     * @param isVerified true if a peer was verified at this endpoint, which shows that it wants to be called.
     * @throws DialRateLimited if there were too many connections recently.
     */
    countConnection(ip: string, isVerified: boolean): void {
      const bucket = addresses.of(`${isVerified} ${addressPrefixOf(ip)}`, isVerified ? verifiedRate : unverifiedRate);
      if (!bucket.tryRemoveTokens(1)) {
        throw new DialRateLimited();
      }
    },
  };
}
