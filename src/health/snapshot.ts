/** Builds the health snapshot. Every health response derives from the snapshot, so that no two responses disagree. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type HealthSnapshotSchema,
  HealthStatus,
  type MainLoopSchema,
} from "../../gen/gatehouse/health/v1/health_pb.js";
import type { BootProgress } from "./boot-progress.js";
import type { BoundedProbe } from "./bounded-probe.js";
import type { ProcessErrors } from "./process-errors.js";
import type { Subsystems } from "./subsystems.js";

export interface MainLoopHealth {
  heartbeat(): MessageInitShape<typeof MainLoopSchema>;
  /** Returns true if the main loop exited or missed its heartbeat, and false before it starts. */
  isStalled(): boolean;
}

export interface HealthSources {
  readonly version: string;
  readonly versionName: string;
  readonly uptimeS: () => number;
  readonly isDormant: () => boolean;
  readonly isAccepting: () => boolean;
  readonly boot: Pick<BootProgress, "state">;
  readonly subsystems: Pick<Subsystems, "all" | "summary">;
  readonly mainLoop: MainLoopHealth;
  readonly pendingCount: BoundedProbe;
  readonly processErrors: Pick<ProcessErrors, "counters">;
}

export type HealthSnapshot = MessageInitShape<typeof HealthSnapshotSchema>;

/**
 * Takes a snapshot: immediately while the pending count is fresh, otherwise at the latest after the probe's timeout.
 */
export type TakeSnapshot = () => HealthSnapshot | Promise<HealthSnapshot>;

export function createTakeSnapshot(sources: HealthSources): TakeSnapshot {
  function assemble(pendingCount: number | null): HealthSnapshot {
    const dormant = sources.isDormant();
    const { isFailing, isDegraded, ports } = sources.subsystems.summary();
    return {
      version: sources.version,
      versionName: sources.versionName,
      accepting: sources.isAccepting(),
      mempoolSize: pendingCount ?? undefined,
      uptimeS: sources.uptimeS(),
      status: rollUp({
        pendingCountKnown: pendingCount !== null,
        chainFailed: isFailing,
        mainLoopStalled: sources.mainLoop.isStalled(),
        dormant,
        otherFailed: isDegraded,
      }),
      dormant,
      boot: sources.boot.state(),
      // Immutable parts are encoded once. What changes all the time are a few numbers between them.
      subsystems: sources.subsystems.all(),
      ports,
      mainLoop: sources.mainLoop.heartbeat(),
      errors: sources.processErrors.counters,
    };
  }

  return () => {
    const pending = sources.pendingCount();
    return pending instanceof Promise ? pending.then(assemble) : assemble(pending);
  };
}

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
