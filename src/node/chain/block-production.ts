/**
 * Block production by a node that is the only authority. Produces blocks unless something prevents it, and reports the
 * reason if it produces none.
 */
import { createErrorThrottle } from "../../base/logging/error-throttle.js";
import type { BuildResult, AuthorityKey } from "../../chain/writer/block-builder.js";
import type { Chain } from "../../chain/chain.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import type { HeadStatements } from "../../chain/writer/head-statements.js";
import { createBlockProducer } from "../../chain/writer/block-producer.js";
import type { SharedSubsystem } from "../../health/subsystems.js";
import type { NodeCore } from "../lifecycle/core.js";
import { createHeadSigner } from "./head-signer.js";
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
  core: Pick<NodeCore, "log" | "onShutdown" | "stateHeadEveryMs" | "subsystems">,
  deps: BlockProductionDeps,
): void {
  const { log, onShutdown, subsystems } = core;
  const { chain, key, chainHealth, isSynced, whyUnknown, whyStopped, checkClock } = deps;
  const headSigner = createHeadSigner(core, deps);
  let waitReason: string | undefined;

  /** Shows the reason for which block production waits. Logs the reason once for each wait. */
  function showWaiting(reason: string | undefined): void {
    subsystems.set("chain", { extra: { reason } });
    if (reason !== undefined && waitReason === undefined) {
      log.warn({ subsystem: "chain" }, reason);
    }
    waitReason = reason;
  }

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
      await headSigner.signIfDue(timeMs);
    } else {
      headSigner.recordSigned();
    }
    return built;
  }

  const throttle = createErrorThrottle({
    log,
    fields: { subsystem: "chain" },
    message: "A block could not be produced; retrying",
    recoveryMessage: "Blocks are produced again",
  });
  const producer = createBlockProducer({
    async produceBlock() {
      const built = await produceBlock();
      if (built?.block !== undefined) {
        throttle.succeeded();
      }
      return built;
    },
    pauseMs: productionIntervalMs,
    stuckAfterMs,
    nowMs: () => performance.now(),
    onError: (error) => throttle.failed(error),
    onStuck: (reason) => chainHealth.report("block production", reason),
  });
  onShutdown("block production", () => producer.stop());
}

/** Returns the message that no node produces blocks, because the genesis names several authorities. */
export function describeNoConsensus(authorities: number): string {
  return (
    `The genesis has ${authorities} authorities, so no node produces blocks by itself, and no consensus process reports to ` +
    "this node's control service: this node produces no blocks and accepts no transactions."
  );
}
