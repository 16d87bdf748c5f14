/** Block production: builds blocks periodically and reports a lack of progress while transactions wait. */
import { type PeriodicTask, startPeriodicTask } from "../../base/async/periodic-task.js";
import type { BuildResult } from "./block-builder.js";

export interface BlockProducerDeps {
  /** Builds the next block. Returns undefined if there is no reason to build one, or if the node may not. */
  readonly produceBlock: () => Promise<BuildResult | undefined>;
  /** Pause between two attempts. */
  readonly pauseMs: number;
  /** Time without progress after which block production counts as stuck. */
  readonly stuckAfterMs: number;
  readonly nowMs: () => number;
  /** Called when a block cannot be built. */
  readonly onError: (error: unknown) => void;
  /** Called with a reason when block production gets stuck, and with undefined when it makes progress again. */
  readonly onStuck: (reason: string | undefined) => void;
}

/**
 * Starts block production. A block, a rejection or an empty mempool counts as progress. Block production counts as
 * stuck if transactions wait longer than the limit, whatever the cause.
 */
export function createBlockProducer({
  produceBlock,
  pauseMs,
  stuckAfterMs,
  nowMs,
  onError,
  onStuck,
}: BlockProducerDeps): PeriodicTask {
  let lastProgressMs = nowMs();
  let isStuck = false;

  function record(hasProgress: boolean, why: string): void {
    if (hasProgress) {
      lastProgressMs = nowMs();
    }
    const wasStuck = isStuck;
    isStuck = nowMs() - lastProgressMs > stuckAfterMs;
    if (isStuck !== wasStuck) {
      onStuck(isStuck ? `No block could be produced for ${Math.round(stuckAfterMs / 1_000)} s: ${why}` : undefined);
    }
  }

  return startPeriodicTask(
    async () => {
      try {
        const built = await produceBlock();
        const isWaiting = built !== undefined && built.block === undefined && built.rejected.size === 0;
        record(!isWaiting || built.deferredCount === 0, "a resource that its transactions need is busy.");
      } catch (error) {
        record(false, "block production fails; see the log for the error.");
        throw error;
      }
    },
    pauseMs,
    onError,
  );
}
