/** Builds the health snapshot. Every health response derives from the snapshot, so that no two responses disagree. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type HealthSnapshotSchema,
  HealthStatus,
  type MainLoopSchema,
  type PortSchema,
} from "../../gen/gatehouse/health/v1/health_pb.js";
import type { BootProgress } from "./boot-progress.js";
import type { BoundedProbe } from "./bounded-probe.js";
import type { ProcessErrors } from "./process-errors.js";
import { consequencesOf, type SubsystemState, type Subsystems } from "./subsystems.js";

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
  readonly subsystems: Pick<Subsystems, "all">;
  readonly mainLoop: MainLoopHealth;
  readonly pendingCount: BoundedProbe;
  readonly processErrors: ProcessErrors;
}

export type HealthSnapshot = MessageInitShape<typeof HealthSnapshotSchema>;

/**
 * Takes a snapshot: immediately while the pending count is fresh, otherwise at the latest after the probe's timeout.
 */
export type TakeSnapshot = () => HealthSnapshot | Promise<HealthSnapshot>;

export function createTakeSnapshot(sources: HealthSources): TakeSnapshot {
  const { processErrors } = sources;

  function assemble(pendingCount: number | null): HealthSnapshot {
    const dormant = sources.isDormant();
    const subsystems = sources.subsystems.all();
    const { isFailing, isDegraded } = consequencesOf(subsystems);
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
      subsystems,
      ports: portsOf(subsystems),
      mainLoop: sources.mainLoop.heartbeat(),
      errors: {
        uncaughtTotal: BigInt(processErrors.uncaughtTotal),
        unhandledRejectionTotal: BigInt(processErrors.unhandledRejectionTotal),
        lastUncaught: processErrors.lastUncaught,
      },
    };
  }

  return () => {
    const pending = sources.pendingCount();
    return pending instanceof Promise ? pending.then(assemble) : assemble(pending);
  };
}

/**
 * Lists the ports that subsystems have bound. A missing `requestedPort` means that the subsystem got the port it
 * requested.
 */
function portsOf(
  subsystems: Readonly<Record<string, SubsystemState>>,
): Record<string, MessageInitShape<typeof PortSchema>> {
  const ports: Record<string, MessageInitShape<typeof PortSchema>> = {};
  for (const [name, { port, requestedPort }] of Object.entries(subsystems)) {
    if (port !== undefined) {
      const requested = requestedPort ?? port;
      ports[name] = { requested, actual: port, drifted: requested !== port };
    }
  }
  return ports;
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
