/**
 * Block production by a node that is the only authority. Produces blocks unless something prevents it, and reports the
 * reason if it produces none.
 */
import { startPeriodicTask } from "../../base/async/periodic-task.js";
import { createErrorThrottle } from "../../base/logging/error-throttle.js";
import type { BuildResult, AuthorityKey } from "../../chain/writer/block-builder.js";
import type { Chain } from "../../chain/chain.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import type { HeadStatements } from "../../chain/writer/head-statements.js";
import type { SharedSubsystem } from "../../health/subsystems.js";
import type { NodeCore } from "../lifecycle/core.js";
import type { SnapshotSyncStatus } from "./snapshot-sync-status.js";

/** Interval in milliseconds at which a block producer checks for pending transactions. */
const productionIntervalMs = 250;
/** Time in milliseconds without progress after which block production counts as failed. */
const stuckAfterMs = 10_000;

/** Dependencies of block production besides the core. */
export interface BlockProductionDeps {
  readonly genesis: Genesis | undefined;
  readonly chain: Chain;
  readonly heads: Pick<HeadStatements, "accept">;
  readonly syncStatus: SnapshotSyncStatus;
  readonly key: AuthorityKey;
  readonly chainHealth: SharedSubsystem;
  /** Returns true if the node has the latest block that it knows of. */
  readonly isSynced: () => boolean;
  /** Returns the reason why this node does not know yet if a newer block exists; undefined once it knows. */
  readonly whyUnknown: () => string | undefined;
  /** Returns the reason why this node must not produce blocks any more; undefined if it may. */
  readonly whyStopped: () => string | undefined;
  /** Checks if a block of this time would be too far ahead of the peers' clocks. Shows and returns the reason if so. */
  readonly checkClock: (timeMs: number) => string | undefined;
}

/**
 * Starts block production if this node's key is the only authority of the genesis. With several authorities, no node
 * produces blocks by itself, and the node reports that.
 */
export function startBlockProduction(
  core: Pick<NodeCore, "config" | "log" | "onShutdown" | "stateHeadEveryMs" | "subsystems" | "warn">,
  deps: BlockProductionDeps,
): void {
  const { genesis, chain, syncStatus, key, chainHealth } = deps;
  const authorities = genesis?.authorities ?? [];
  const hasChain = chain.head() !== undefined || syncStatus.isRunning();
  if (core.config.role !== "writer" || !hasChain || !authorities.includes(key.publicKey)) {
    return;
  }
  if (authorities.length > 1) {
    // Shown until a consensus process sends its first report.
    const reason = describeNoConsensus(authorities.length);
    core.warn("chain", reason);
    chainHealth.report("consensus", reason);
    return;
  }
  produceAlone(core, deps);
}

/** Starts block production by the only authority. */
function produceAlone(
  {
    log,
    onShutdown,
    stateHeadEveryMs,
    subsystems,
  }: Pick<NodeCore, "log" | "onShutdown" | "stateHeadEveryMs" | "subsystems">,
  { chain, heads, key, chainHealth, isSynced, whyUnknown, whyStopped, checkClock }: BlockProductionDeps,
): void {
  /** Monotonic time of the last signed block or head. The first signed head is due immediately. */
  let lastSignedMs = -Infinity;
  let waitReason: string | undefined;
  const production = createErrorThrottle({
    log,
    fields: { subsystem: "chain" },
    message: "A block could not be produced; retrying",
    recoveryMessage: "Blocks are produced again",
  });
  const signing = createErrorThrottle({
    log,
    level: "warn",
    fields: { subsystem: "chain" },
    message: "The head could not be signed again; retrying",
    recoveryMessage: "The head is signed again",
  });

  /** Shows the reason for which block production waits. Logs the reason once for each wait. */
  function showWaiting(reason: string | undefined): void {
    subsystems.set("chain", { extra: { reason } });
    if (reason !== undefined && waitReason === undefined) {
      log.warn({ subsystem: "chain" }, reason);
    }
    waitReason = reason;
  }

  /** Signs the latest head, if nothing was signed for a while: no newer block exists. After an error, the next call retries. */
  async function signHeadIfDue(timeMs: number): Promise<void> {
    const isDue = performance.now() - lastSignedMs >= stateHeadEveryMs;
    // If the clock is behind the latest block, a signed head would add nothing to that block.
    if (!isDue || timeMs < Number(chain.head()?.timestampMs ?? 0)) {
      return;
    }
    try {
      heads.accept(await chain.signHead(key, timeMs));
      lastSignedMs = performance.now();
      signing.succeeded();
    } catch (error) {
      signing.failed(error);
    }
  }

  /** Builds the next block. Returns undefined if the node may not. */
  async function produceBlock(): Promise<BuildResult | undefined> {
    // The clock check and the block use the same time.
    const timeMs = Date.now();
    const isClockFine = checkClock(timeMs) === undefined;
    const isAllowed = isClockFine && whyStopped() === undefined;
    showWaiting(isAllowed ? whyUnknown() : undefined);
    if (!isAllowed || !isSynced()) {
      return undefined;
    }
    const built = await chain.produceBlock(key, timeMs);
    if (built.block === undefined) {
      await signHeadIfDue(timeMs);
    } else {
      lastSignedMs = performance.now();
      production.succeeded();
    }
    return built;
  }

  const recordAttempt = createProgressMonitor(
    () => performance.now(),
    (reason) => chainHealth.report("block production", reason),
  );
  const attempts = startPeriodicTask(
    async () => {
      try {
        recordAttempt(await produceBlock());
      } catch (error) {
        recordAttempt("failed");
        throw error;
      }
    },
    productionIntervalMs,
    (error) => production.failed(error),
  );
  onShutdown("block production", () => attempts.stop());
}

/**
 * Creates the function that records the outcome of each attempt to build a block. A block, a rejection or an empty
 * mempool counts as progress. Block production counts as stuck if transactions wait too long, whatever the cause.
 *
 * @param onStuck called with a reason when block production gets stuck, and with undefined when it makes progress again.
 */
export function createProgressMonitor(
  nowMs: () => number,
  onStuck: (reason: string | undefined) => void,
): (outcome: BuildResult | "failed" | undefined) => void {
  let lastProgressMs = nowMs();
  let isStuck = false;
  return (outcome) => {
    const hasFailed = outcome === "failed";
    const isWaiting =
      hasFailed || (outcome?.block === undefined && outcome?.rejected.size === 0 && outcome.deferredCount > 0);
    lastProgressMs = isWaiting ? lastProgressMs : nowMs();
    const wasStuck = isStuck;
    isStuck = nowMs() - lastProgressMs > stuckAfterMs;
    if (isStuck !== wasStuck) {
      const reason = hasFailed
        ? "block production fails; see the log for the error."
        : "a resource that its transactions need is busy.";
      onStuck(isStuck ? `No block could be produced for ${stuckAfterMs / 1_000} s: ${reason}` : undefined);
    }
  };
}

/** Returns the message that no node produces blocks, because the genesis names several authorities. */
export function describeNoConsensus(authorities: number): string {
  return (
    `The genesis has ${authorities} authorities, so no node produces blocks by itself, and no consensus process reports to ` +
    "this node's control service: this node produces no blocks and accepts no transactions."
  );
}
