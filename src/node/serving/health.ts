/** The health of a node: the snapshot, who watches it, and what readiness is made of. */
import { type BoundedProbe, createBoundedProbe } from "../../health/bounded-probe.js";
import { createHealthFeed, type HealthFeed } from "../../health/feed.js";
import { createReadiness } from "../../health/probes.js";
import { createTakeSnapshot, type MainLoopHealth, type TakeSnapshot } from "../../health/snapshot.js";
import { codename, version } from "../../base/version.js";
import type { Database } from "../../db/queries/database.js";
import type { SharedSubsystem } from "../../health/shared-subsystem.js";
import type { ChainStore } from "../../chain/blocks/store.js";
import type { NodeCore } from "../lifecycle/core.js";

/** The parts that the health is read from once they are there. */
export interface NodeHealthDeps {
  readonly store: Pick<ChainStore, "pendingCount">;
  readonly database: Database;
  readonly mainLoop: MainLoopHealth;
  readonly isAccepting: () => boolean;
}

/** The health of a node. */
export interface NodeHealth {
  readonly takeSnapshot: TakeSnapshot;
  readonly feed: HealthFeed;
  readonly readiness: ReturnType<typeof createReadiness>;
  readonly isMainLoopDead: () => boolean;
  /** Reads from these parts from now on. Until then the pending transactions cannot be counted: the node is failing. */
  readFrom(deps: NodeHealthDeps): void;
}

/** The heartbeat of a main loop that has not been built yet. */
const noHeartbeat = { heartbeatAgeS: undefined, iterationsTotal: 0n, exited: false, exitReason: undefined };

/** How old the count of pending transactions may be, and how long it is waited for. */
const countMaxAgeMs = 900;
const countTimeoutMs = 1_000;

/** Nobody answers for these reasons: no connection, or none any more; a number of milliseconds. */
const noAnswer = /^(E[A-Z]+|08...|57P..|no answer .*)$/;

function describeReads(problem: string): string {
  return `The database ${noAnswer.test(problem) ? "does not answer" : "cannot be read"} (${problem}).`;
}

/** Creates the health of a node that starts. */
export function createNodeHealth(
  core: NodeCore,
  { chainHealth }: { readonly chainHealth: SharedSubsystem },
): NodeHealth {
  const { lifecycle, progress, subsystems, processErrors } = core;
  let deps: NodeHealthDeps | undefined;
  let pendingCount: BoundedProbe | undefined;
  const isMainLoopDead = (): boolean => deps?.mainLoop.isDead() ?? false;
  const takeSnapshot = createTakeSnapshot({
    version,
    versionName: codename,
    uptimeS: () => process.uptime(),
    isDormant: lifecycle.isDormant,
    isAccepting: () => deps?.isAccepting() ?? false,
    boot: progress,
    subsystems,
    mainLoop: { heartbeat: () => deps?.mainLoop.heartbeat() ?? noHeartbeat, isDead: isMainLoopDead },
    processErrors,
    pendingCount: { read: () => pendingCount?.read() ?? null },
  });
  return {
    takeSnapshot,
    feed: createHealthFeed(takeSnapshot),
    readiness: createReadiness({ isMainLoopDead, isStopping: lifecycle.isStopping }),
    isMainLoopDead,
    readFrom(given) {
      const { store, database } = given;
      pendingCount = createBoundedProbe({
        query: () => store.pendingCount(),
        maxAgeMs: countMaxAgeMs,
        timeoutMs: countTimeoutMs,
        nowMs: () => performance.now(),
        isSilent: () => [database, database.mempool].some(({ stalledMs: silentMs }) => silentMs() >= countTimeoutMs),
        onChange: (problem) => chainHealth.tell("database reads", problem && describeReads(problem)),
      });
      deps = given;
    },
  };
}
