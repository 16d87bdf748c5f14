/** The health of a node: the snapshot, who watches it, and what readiness is made of. */
import { createBoundedProbe } from "../health/bounded-probe.js";
import { createHealthFeed, type HealthFeed } from "../health/feed.js";
import { createReadiness } from "../health/probes.js";
import { createTakeSnapshot, type MainLoopHealth, type TakeSnapshot } from "../health/snapshot.js";
import { codename, version } from "../base/version.js";
import type { Database } from "../db/database.js";
import type { SharedSubsystem } from "../health/shared-subsystem.js";
import type { ChainStore } from "../chain/store.js";
import type { NodeCore } from "./core.js";

/** What it is made of beside the core. */
export interface NodeHealthParts {
  readonly store: Pick<ChainStore, "pendingCount">;
  readonly database: Database;
  readonly chainHealth: SharedSubsystem;
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

/** Nobody answers for these reasons: no connection, or none any more; a number of milliseconds. */
const noAnswer = /^(E[A-Z]+|08...|57P..|no answer .*)$/;

function describeReads(problem: string): string {
  return `The database ${noAnswer.test(problem) ? "does not answer" : "cannot be read"} (${problem}).`;
}

export function createNodeHealth(core: NodeCore, parts: NodeHealthParts): NodeHealth {
  const { store, database, mainLoop, isAccepting, chainHealth } = parts;
  const { lifecycle, progress, subsystems, processErrors } = core;
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
      isSilent: () => [database, database.mempool].some(({ silentMs }) => silentMs() >= countTimeoutMs),
      onChange: (problem) => chainHealth.tell("database reads", problem && describeReads(problem)),
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
