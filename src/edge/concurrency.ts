/**
 * Limits requests and streams in flight, in total and per address, and rejects requests if event-loop lag exceeds the
 * limit in two consecutive samples. At a limit in total, the address that holds most slots gives way. Streams stay open
 * for as long as their clients like, so they are counted apart from requests.
 */
import { RpcError } from "../rpc/errors.js";
import type { AddressUsage, Slot, UsageTracker } from "./address-usage.js";

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
/** Time for which a rejection at a limit in total is reported, in milliseconds. */
const reportedMs = 10_000;

export function createConcurrency(overload: OverloadLimits, streams: StreamLimits, usageTracker: UsageTracker) {
  const { maxInFlight, maxInFlightPerAddress, maxLagMs } = overload;
  let activeRequests = 0;
  let openStreams = 0;
  let expectedMs = performance.now() + pollIntervalMs;
  let lagMs = 0;
  let sustainedLagMs = 0;
  let lastRejection: { readonly reason: string; readonly untilMs: number } | undefined;
  const timer = setInterval(() => {
    const now = performance.now();
    const lag = Math.max(0, now - expectedMs);
    sustainedLagMs = Math.min(lagMs, lag);
    lagMs = lag;
    expectedMs = now + pollIntervalMs;
  }, pollIntervalMs).unref();

  function recordRejection(reason: string): void {
    lastRejection = { reason, untilMs: performance.now() + reportedMs };
  }

  function checkAddress(usage: AddressUsage, isStream: boolean): void {
    const limit = isStream ? streams.perAddress : maxInFlightPerAddress;
    const count = isStream ? usage.streams + usage.elsewhere.streams : usage.requests + usage.elsewhere.requests;
    if (count >= limit) {
      throw isStream
        ? new RpcError(
            "TOO_MANY_STREAMS",
            `Your address has ${limit} streams open, which is the limit; close one first.`,
            streamRetryAfterS,
          )
        : new RpcError(
            "RATE_LIMITED",
            `Your address has ${limit} requests in flight, which is the limit; try again in ${retryAfterS} s.`,
            retryAfterS,
          );
    }
  }

  /** Frees a slot for an address by aborting the latest one of the address that holds most, if it holds more. */
  function makeRoom(usage: AddressUsage, isStream: boolean): void {
    const latest = isStream ? "latestStream" : "latestRequest";
    const count = isStream ? "streams" : "requests";
    let most = usage;
    for (const other of usageTracker.all()) {
      if (other[count] > most[count]) {
        most = other;
      }
    }
    if (most[count] > usage[count] + 1) {
      most[latest]?.giveWay();
      return;
    }
    if (isStream) {
      recordRejection(`${streams.total} streams are open, which is the limit; further ones are rejected.`);
      const message = `The limit of ${streams.total} open streams is reached; try again in ${streamRetryAfterS} s.`;
      throw new RpcError("TOO_MANY_STREAMS", message, streamRetryAfterS);
    }
    recordRejection(`${maxInFlight} requests are in flight, which is the limit; further ones are rejected.`);
    throw overloaded();
  }

  return {
    /**
     * Checks that the node can admit another request.
     *
     * @throws RpcError OVERLOADED
     */
    checkLoad() {
      if (sustainedLagMs > maxLagMs) {
        recordRejection(`The event loop lags more than ${maxLagMs} ms; requests are rejected.`);
        throw overloaded();
      }
    },
    /**
     * Occupies a slot.
     *
     * @param isLimited false for a probe, which is answered even at a limit.
     * @throws RpcError RATE_LIMITED or TOO_MANY_STREAMS if a limit of the address is reached; OVERLOADED or
     *   TOO_MANY_STREAMS for one in total.
     */
    acquire(slot: Slot, isLimited: boolean) {
      const { usage, isStream } = slot;
      if (isLimited) {
        checkAddress(usage, isStream);
        if (isStream ? openStreams >= streams.total : activeRequests >= maxInFlight) {
          makeRoom(usage, isStream);
        }
      }
      const latest = isStream ? "latestStream" : "latestRequest";
      slot.older = usage[latest];
      if (slot.older !== undefined) {
        slot.older.newer = slot;
      }
      usage[latest] = slot;
      if (isStream) {
        openStreams++;
        usage.streams++;
      } else {
        activeRequests++;
        usage.requests++;
      }
    },
    release(slot: Slot) {
      const { usage, isStream, newer, older } = slot;
      if (newer !== undefined) {
        newer.older = older;
      } else {
        usage[isStream ? "latestStream" : "latestRequest"] = older;
      }
      if (older !== undefined) {
        older.newer = newer;
      }
      slot.newer = slot.older = undefined;
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
    /** Returns the limit in total at which requests have been rejected in the last 10 s; undefined if none were. */
    overload: () =>
      lastRejection !== undefined && performance.now() < lastRejection.untilMs ? lastRejection.reason : undefined,
    stop: () => clearInterval(timer),
  };
}

function overloaded(): RpcError {
  return new RpcError("OVERLOADED", `The node is overloaded; try again in ${retryAfterS} s.`, retryAfterS);
}
