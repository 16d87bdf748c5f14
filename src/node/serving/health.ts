/** Health of a node: its snapshot, the subscriptions to it, and the readiness checks. */
import { type BoundedProbe, createBoundedProbe } from "../../health/bounded-probe.js";
import { createHealthFeed } from "../../health/feed.js";
import { createReadiness, isPassed } from "../../health/service.js";
import { createTakeSnapshot, type MainLoopHealth } from "../../health/snapshot.js";
import { codename, version } from "../../base/version.js";
import type { Database } from "../../db/queries/database.js";
import type { SharedSubsystem } from "../../health/subsystems.js";
import type { ChainStore } from "../../chain/blocks/store.js";
import type { NodeCore } from "../lifecycle/core.js";

/** Sources of the health, available once the chain and the network exist. */
interface HealthSources {
  readonly store: Pick<ChainStore, "pendingCount">;
  readonly database: Database;
  readonly mainLoop: MainLoopHealth;
  readonly isAccepting: () => boolean;
  readonly whyNotFollowing: () => string | undefined;
}

export type NodeHealth = ReturnType<typeof createNodeHealth>;

const noHeartbeat = { heartbeatAgeS: undefined, iterationsTotal: 0n, exited: false, exitReason: undefined };

/** Maximum age in milliseconds of the cached number of pending transactions. */
const countMaxAgeMs = 900;
/** Timeout in milliseconds of the query that counts pending transactions. */
const countTimeoutMs = 1_000;

/** Matches problems that mean that the database does not respond: no connection, a lost connection, or a timeout. */
const noResponse = /^(E(?!IO$)[A-Z]+|08...|57P..|no response .*|no connection)$/;

/** Describes a problem of database reads: an error code, or a short text. */
function describeReads(problem: string): string {
  return `The database ${noResponse.test(problem) ? "does not respond" : "cannot be read"} (${problem}).`;
}

export function createNodeHealth(
  core: Pick<NodeCore, "config" | "lifecycle" | "processErrors" | "progress" | "subsystems">,
  chainHealth: SharedSubsystem,
) {
  const { config, lifecycle, progress, subsystems, processErrors } = core;
  let sources: HealthSources | undefined;
  let pendingCount: BoundedProbe | undefined;
  // A node that stops ends its loop on purpose. A supervisor that saw a failure would cut the drain short.
  const isMainLoopStalled = (): boolean => !lifecycle.isStopping() && (sources?.mainLoop.isStalled() ?? false);
  const takeSnapshot = createTakeSnapshot({
    version,
    versionName: codename,
    // Milliseconds: readers that keep 64-bit integers exact reject decimals of more than 15 characters.
    uptimeS: () => Math.round(process.uptime() * 1_000) / 1_000,
    isDormant: lifecycle.isDormant,
    isAccepting: () => sources?.isAccepting() ?? false,
    boot: progress,
    subsystems,
    mainLoop: { heartbeat: () => sources?.mainLoop.heartbeat() ?? noHeartbeat, isStalled: isMainLoopStalled },
    processErrors,
    pendingCount: () => pendingCount?.() ?? null,
  });
  const readiness = createReadiness({
    isMainLoopStalled,
    isStopAnnounced: lifecycle.isStopAnnounced,
    whyNotFollowing: () => (sources === undefined ? "The node is booting." : sources.whyNotFollowing()),
    isStandby: config.role === "standby",
  });
  return {
    takeSnapshot,
    feed: createHealthFeed(takeSnapshot, undefined, (snapshot) => isPassed(readiness(snapshot))),
    readiness,
    isMainLoopStalled,
    /** Sets the sources. Before that, pending transactions cannot be counted, so the node counts as failing. */
    setSources(available: HealthSources): void {
      const { store, database } = available;
      pendingCount = createBoundedProbe({
        query: () => store.pendingCount(),
        maxAgeMs: countMaxAgeMs,
        timeoutMs: countTimeoutMs,
        nowMs: () => performance.now(),
        isStalled: () => [database, database.mempool].some(({ stalledMs }) => stalledMs() >= countTimeoutMs),
        onChange: (problem) => chainHealth.report("database reads", problem && describeReads(problem)),
      });
      sources = available;
    },
  };
}
