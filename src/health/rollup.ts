import { HealthStatus } from "../../gen/gatehouse/health/v1/health_pb.js";

/** Inputs of the top-level status. */
export interface RollUpFacts {
  /** True if the number of pending transactions is available. */
  readonly pendingCountKnown: boolean;
  readonly chainFailed: boolean;
  /** True if the main loop exited or missed its heartbeat. */
  readonly mainLoopStalled: boolean;
  readonly dormant: boolean;
  /** True if a subsystem other than the chain and the main loop failed. */
  readonly otherFailed: boolean;
}

/**
 * Returns the top-level status, in the precedence failing, dormant, degraded, ok ("Health status" in the
 * specification).
 */
export function rollUp(facts: RollUpFacts): HealthStatus {
  if (!facts.pendingCountKnown || facts.chainFailed || (facts.mainLoopStalled && !facts.dormant)) {
    return HealthStatus.FAILING;
  }
  if (facts.dormant) {
    return HealthStatus.DORMANT;
  }
  return facts.otherFailed ? HealthStatus.DEGRADED : HealthStatus.OK;
}
