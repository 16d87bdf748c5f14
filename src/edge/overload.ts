/**
 * Refuses new work early when there is too much of it already: more requests under way than the bound, or an event loop
 * that is late at two looks in a row. What is refused costs little; what was let in is finished.
 */
import { RpcError } from "../rpc/errors.js";

/** When it is too much. */
export interface OverloadBounds {
  /** Requests under way. */
  readonly maxInFlight: number;
  /** Of those, requests of one address, or one /64 of IPv6: one that does not end its requests takes no one's place. */
  readonly maxInFlightPerAddress: number;
  /** How late the event loop may be, in milliseconds. */
  readonly maxLagMs: number;
}

/** The bounds of a node. */
export const defaultOverload: OverloadBounds = { maxInFlight: 2_000, maxInFlightPerAddress: 500, maxLagMs: 250 };

export interface Overload {
  /**
   * Looks whether another request may come in.
   *
   * @throws Failure OVERLOADED
   */
  check(inFlight: number): void;
  /**
   * Looks whether an address may have another request.
   *
   * @throws Failure OVERLOADED
   */
  checkAddress(inFlight: number): void;
  stop(): void;
}

const lookEveryMs = 100;
const retryAfterS = 1;

export function createOverload({ maxInFlight, maxInFlightPerAddress, maxLagMs }: OverloadBounds): Overload {
  let expectedMs = performance.now() + lookEveryMs;
  let lagMs = 0;
  let sustainedLagMs = 0;
  const timer = setInterval(() => {
    const now = performance.now();
    const lag = Math.max(0, now - expectedMs);
    sustainedLagMs = Math.min(lagMs, lag);
    lagMs = lag;
    expectedMs = now + lookEveryMs;
  }, lookEveryMs).unref();

  return {
    checkAddress(inFlight) {
      if (inFlight >= maxInFlightPerAddress) {
        const message = `Your address has ${maxInFlightPerAddress} requests under way, which is the most; try again in ${retryAfterS} s.`;
        throw new RpcError("OVERLOADED", message, retryAfterS);
      }
    },
    check(inFlight) {
      if (inFlight >= maxInFlight || sustainedLagMs > maxLagMs) {
        throw new RpcError(
          "OVERLOADED",
          `The node has more work than it can do; try again in ${retryAfterS} s.`,
          retryAfterS,
        );
      }
    },
    stop: () => clearInterval(timer),
  };
}
