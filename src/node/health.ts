/** The health of a node: the snapshot, who watches it, and what readiness is made of. */
import { createBoundedProbe } from "../health/bounded-probe.js";
import { createHealthFeed, type HealthFeed } from "../health/feed.js";
import { createReadiness } from "../health/probes.js";
import { createTakeSnapshot, type MainLoopHealth, type TakeSnapshot } from "../health/snapshot.js";
import { codename, version } from "../base/version.js";
import type { ChainStore } from "../chain/store.js";
import type { NodeCore } from "./core.js";

/** What it is made of beside the core. */
export interface NodeHealthParts {
  readonly store: Pick<ChainStore, "pendingCount">;
  readonly mainLoop: MainLoopHealth;
  readonly isAccepting: () => boolean;
}

/** The health of a node. */
export interface NodeHealth {
  readonly takeSnapshot: TakeSnapshot;
  readonly feed: HealthFeed;
  readonly readiness: ReturnType<typeof createReadiness>;
  readonly isMainLoopDead: () => boolean;
}

/** How old the count of pending transactions may be, and how long it is waited for. */
const countMaxAgeMs = 900;
const countTimeoutMs = 1_000;

export function createNodeHealth(core: NodeCore, { store, mainLoop, isAccepting }: NodeHealthParts): NodeHealth {
  const { log, lifecycle, progress, subsystems, processErrors } = core;
  const takeSnapshot = createTakeSnapshot({
    version,
    versionName: codename,
    uptimeS: () => process.uptime(),
    isDormant: lifecycle.isDormant,
    isAccepting,
    boot: progress,
    subsystems,
    mainLoop,
    processErrors,
    pendingCount: createBoundedProbe({
      query: () => store.pendingCount(),
      maxAgeMs: countMaxAgeMs,
      timeoutMs: countTimeoutMs,
      nowMs: () => performance.now(),
      onChange: (problem) => {
        if (problem === undefined) {
          log.info({ subsystem: "chain" }, "The database answers again");
        } else {
          log.error({ subsystem: "chain", problem }, "The pending transactions cannot be counted");
        }
      },
    }),
  });
  const isMainLoopDead = (): boolean => mainLoop.isDead();
  return {
    takeSnapshot,
    feed: createHealthFeed(takeSnapshot),
    readiness: createReadiness({ isMainLoopDead, isStopping: lifecycle.isStopping }),
    isMainLoopDead,
  };
}
