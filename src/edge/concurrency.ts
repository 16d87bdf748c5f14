/**
 * Limits requests and streams in flight, in total and per address, and rejects requests if event-loop lag exceeds the
 * limit in two consecutive samples. A rejection is cheap; admitted requests run to completion. Streams stay open for as
 * long as their clients like, so they are counted apart from requests.
 */
import { RpcError } from "../rpc/errors.js";
import type { AddressUsage } from "./address-usage.js";

export interface OverloadLimits {
  readonly maxInFlight: number;
  /** Limit on requests in flight per IPv4 address or IPv6 /64 prefix, so that one caller cannot occupy all slots. */
  readonly maxInFlightPerAddress: number;
  readonly maxLagMs: number;
}

export const defaultOverload: OverloadLimits = { maxInFlight: 2_000, maxInFlightPerAddress: 500, maxLagMs: 250 };

export interface StreamLimits {
  readonly total: number;
  /** Limit per IPv4 address or IPv6 /64 prefix. */
  readonly perAddress: number;
}

export const defaultStreams: StreamLimits = { total: 2_000, perAddress: 100 };

const pollIntervalMs = 100;
const retryAfterS = 1;
const streamRetryAfterS = 10;

export function createConcurrency(overload: OverloadLimits, streams: StreamLimits) {
  const { maxInFlight, maxInFlightPerAddress, maxLagMs } = overload;
  let activeRequests = 0;
  let openStreams = 0;
  let expectedMs = performance.now() + pollIntervalMs;
  let lagMs = 0;
  let sustainedLagMs = 0;
  const timer = setInterval(() => {
    const now = performance.now();
    const lag = Math.max(0, now - expectedMs);
    sustainedLagMs = Math.min(lagMs, lag);
    lagMs = lag;
    expectedMs = now + pollIntervalMs;
  }, pollIntervalMs).unref();

  function checkStreams(usage: AddressUsage): void {
    const isAddressFull = usage.streams + usage.elsewhere.streams >= streams.perAddress;
    if (isAddressFull || openStreams >= streams.total) {
      const message = isAddressFull
        ? `Your address has ${streams.perAddress} streams open, which is the limit; close one first.`
        : `The limit of ${streams.total} open streams is reached; try again in ${streamRetryAfterS} s.`;
      throw new RpcError("TOO_MANY_STREAMS", message, streamRetryAfterS);
    }
  }

  return {
    /**
     * Checks that the node can admit another request.
     *
     * @throws RpcError OVERLOADED
     */
    checkLoad() {
      if (activeRequests >= maxInFlight || sustainedLagMs > maxLagMs) {
        throw new RpcError("OVERLOADED", `The node is overloaded; try again in ${retryAfterS} s.`, retryAfterS);
      }
    },
    /**
     * Checks that an address may have another request.
     *
     * @throws RpcError OVERLOADED
     */
    checkAddress(usage: AddressUsage) {
      if (usage.requests + usage.elsewhere.requests >= maxInFlightPerAddress) {
        const message = `Your address has ${maxInFlightPerAddress} requests in flight, which is the limit; try again in ${retryAfterS} s.`;
        throw new RpcError("OVERLOADED", message, retryAfterS);
      }
    },
    /**
     * Acquires a slot.
     *
     * @throws RpcError TOO_MANY_STREAMS if a limit on streams is reached.
     */
    acquire(usage: AddressUsage, isStream: boolean) {
      if (isStream) {
        checkStreams(usage);
        openStreams++;
        usage.streams++;
      } else {
        activeRequests++;
        usage.requests++;
      }
    },
    release(usage: AddressUsage, isStream: boolean) {
      if (isStream) {
        openStreams--;
        usage.streams--;
      } else {
        activeRequests--;
        usage.requests--;
      }
    },
    counts: () => ({
      activeRequests,
      openStreams,
    }),
    stop: () => clearInterval(timer),
  };
}
