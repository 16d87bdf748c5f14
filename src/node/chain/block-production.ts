/** The making of blocks: by a node that alone may, as long as nothing speaks against it. Where it makes none, it says so. */
import { createErrorThrottle } from "../../base/logging/error-throttle.js";
import type { Made, SealingKey } from "../../chain/writer/blocks.js";
import type { Chain } from "../../chain/chain.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import type { HeadStatements } from "../../chain/writer/head-statements.js";
import { createBlockProducer } from "../../chain/writer/block-producer.js";
import type { SharedSubsystem } from "../../health/shared-subsystem.js";
import type { NodeCore } from "../lifecycle/core.js";
import { createHeadSigner } from "./head-signer.js";
import type { SnapshotSyncStatus } from "./snapshot-sync-status.js";

/** How often a sealing node looks for pending transactions. */
const sealEveryMs = 250;
/** How long it may get nowhere before that is a failure. */
const stuckAfterMs = 10_000;

/** What block making needs beside the core. */
export interface SealingDeps {
  readonly genesis: Genesis | undefined;
  readonly chain: Chain;
  readonly heads: Pick<HeadStatements, "take">;
  readonly joining: SnapshotSyncStatus;
  readonly key: SealingKey;
  readonly chainHealth: SharedSubsystem;
  /** The node is at the newest block that it knows of. */
  readonly isSynced: () => boolean;
  /** Why this node does not know yet whether there is a newer block; undefined once it does. */
  readonly whyUnknown: () => string | undefined;
  /** Why this node must not make blocks any more. */
  readonly whyStopped: () => string | undefined;
  /** Shows whether a block of this time would be too far ahead of the peers' clocks, and says why. */
  readonly showClock: (timeMs: number) => string | undefined;
}

/**
 * Makes blocks from now on, if this node alone may: its key is the genesis's single authority. Of several, none does by
 * itself, and says so.
 */
export function makeBlocks(core: NodeCore, deps: SealingDeps): void {
  const { genesis, chain, joining, key, chainHealth } = deps;
  const authorities = genesis?.authorities ?? [];
  const hasChain = chain.head() !== undefined || joining.isRunning();
  if (core.config.role !== "writer" || !hasChain || !authorities.includes(key.publicKey)) {
    return;
  }
  if (authorities.length > 1) {
    // Until the first report of a process that does.
    const reason = describeNoConsensus(authorities.length);
    core.warn("chain", reason);
    chainHealth.tell("consensus", reason);
    return;
  }
  sealAlone(core, deps);
}

function sealAlone(core: NodeCore, deps: SealingDeps): void {
  const { log, onShutdown: onStop, subsystems } = core;
  const { chain, key, chainHealth, isSynced, whyUnknown, whyStopped, showClock } = deps;
  const word = createHeadSigner(core, deps);
  let waitsFor: string | undefined;

  /** Shows what block making waits for, and says so once. */
  function showWaiting(reason: string | undefined): void {
    subsystems.set("chain", { extra: { reason } });
    if (reason !== undefined && waitsFor === undefined) {
      log.warn({ subsystem: "chain" }, reason);
    }
    waitsFor = reason;
  }

  async function seal(): Promise<Made | undefined> {
    // The time that is looked at is the one that is signed.
    const timeMs = Date.now();
    const isInTime = showClock(timeMs) === undefined;
    const isAllowed = isInTime && whyStopped() === undefined;
    showWaiting(isAllowed ? whyUnknown() : undefined);
    if (!isAllowed || !isSynced()) {
      return undefined;
    }
    const made = await chain.seal(key, timeMs);
    if (made.block === undefined) {
      await word.giveIfDue(timeMs);
    } else {
      word.given();
    }
    return made;
  }

  const troubles = createErrorThrottle({
    log,
    fields: { subsystem: "chain" },
    message: "A block could not be made; it is tried again",
    over: "Blocks are made again",
  });
  const sealer = createBlockProducer({
    async seal() {
      const made = await seal();
      if (made?.block !== undefined) {
        troubles.well();
      }
      return made;
    },
    pauseMs: sealEveryMs,
    stuckAfterMs,
    nowMs: () => performance.now(),
    onError: (error) => troubles.failed(error),
    onStuck: (trouble) => chainHealth.tell("block making", trouble),
  });
  onStop("the making of blocks", () => sealer.stop());
}

/** Why nobody makes blocks where several may. */
export function describeNoConsensus(authorities: number): string {
  return (
    `The genesis names ${authorities} authorities, so none makes blocks by itself, and no consensus process reports to ` +
    "this node's control service: no block is made here and no transaction taken."
  );
}
