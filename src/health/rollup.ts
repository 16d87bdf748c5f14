import { HealthStatus } from "../../gen/gatehouse/health/v1/health_pb.js";

/** What the top-level status depends on. */
export interface RollUpFacts {
  /** The pending-transaction count can be obtained. */
  readonly pendingCountKnown: boolean;
  readonly chainFailed: boolean;
  /** The main loop exited or missed its heartbeat. */
  readonly mainLoopDead: boolean;
  readonly dormant: boolean;
  /** A subsystem other than the chain and the main loop is failed. */
  readonly otherFailed: boolean;
}

/** The top-level status: failing before dormant before degraded before ok ("Health status" in the specification). */
export function rollUp(facts: RollUpFacts): HealthStatus {
  if (!facts.pendingCountKnown || facts.chainFailed || (facts.mainLoopDead && !facts.dormant)) {
    return HealthStatus.FAILING;
  }
  if (facts.dormant) {
    return HealthStatus.DORMANT;
  }
  return facts.otherFailed ? HealthStatus.DEGRADED : HealthStatus.OK;
}
