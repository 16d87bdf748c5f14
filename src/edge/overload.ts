/**
 * Rejects new requests if too many are in flight, or if event-loop lag exceeds the limit in two consecutive samples. A
 * rejection is cheap; admitted requests run to completion.
 */
import { RpcError } from "../rpc/errors.js";

export interface OverloadLimits {
  /** Limit on requests in flight. */
  readonly maxInFlight: number;
  /** Limit on requests in flight per IPv4 address or IPv6 /64 prefix, so that one caller cannot occupy all slots. */
  readonly maxInFlightPerAddress: number;
  /** Limit on event-loop lag in milliseconds. */
  readonly maxLagMs: number;
}

export const defaultOverload: OverloadLimits = { maxInFlight: 2_000, maxInFlightPerAddress: 500, maxLagMs: 250 };

export interface Overload {
  /**
   * Checks that the node can admit another request.
   *
   * @throws RpcError OVERLOADED
   */
  check(inFlight: number): void;
  /**
   * Checks that an address may have another request.
   *
   * @throws RpcError OVERLOADED
   */
  checkAddress(inFlight: number): void;
  stop(): void;
}

const pollIntervalMs = 100;
const retryAfterS = 1;

export function createOverload({ maxInFlight, maxInFlightPerAddress, maxLagMs }: OverloadLimits): Overload {
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

  return {
    checkAddress(inFlight) {
      if (inFlight >= maxInFlightPerAddress) {
        const message = `Your address has ${maxInFlightPerAddress} requests in flight, which is the limit; try again in ${retryAfterS} s.`;
        throw new RpcError("OVERLOADED", message, retryAfterS);
      }
    },
    check(inFlight) {
      if (inFlight >= maxInFlight || sustainedLagMs > maxLagMs) {
        throw new RpcError("OVERLOADED", `The node is overloaded; try again in ${retryAfterS} s.`, retryAfterS);
      }
    },
    stop: () => clearInterval(timer),
  };
}
