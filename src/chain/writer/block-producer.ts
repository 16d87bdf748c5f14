/** Makes block after block, and tells when nothing comes of it though transactions wait. */
import { type PeriodicTask, startPeriodicTask } from "../../base/async/periodic-task.js";
import type { Made } from "./blocks.js";

export interface SealerDeps {
  /** Makes the next block; {@link Made} nothing where it has no reason to, or may not now. */
  readonly seal: () => Promise<Made | undefined>;
  readonly pauseMs: number;
  /** How long it may be without progress. */
  readonly stuckAfterMs: number;
  readonly nowMs: () => number;
  /** Hears of a block that could not be made. */
  readonly onError: (error: unknown) => void;
  /** Hears when no progress is made any more (why), and when it is again (undefined). */
  readonly onStuck: (trouble: string | undefined) => void;
}

/**
 * Begins to make blocks. Progress is a block, a rejection, or nothing to do: whoever keeps something waiting for longer
 * is stuck, whatever keeps it from going on.
 */
export function createBlockProducer({
  seal,
  pauseMs,
  stuckAfterMs,
  nowMs,
  onError,
  onStuck,
}: SealerDeps): PeriodicTask {
  let lastProgressMs = nowMs();
  let isStuck = false;

  function record(hasProgress: boolean, why: string): void {
    if (hasProgress) {
      lastProgressMs = nowMs();
    }
    const hasNone = nowMs() - lastProgressMs > stuckAfterMs;
    if (hasNone !== isStuck) {
      isStuck = hasNone;
      onStuck(hasNone ? `No block could be made for ${Math.round(stuckAfterMs / 1_000)} s: ${why}` : undefined);
    }
  }

  return startPeriodicTask(
    async () => {
      try {
        const made = await seal();
        const isWaiting = made !== undefined && made.block === undefined && made.rejected.size === 0;
        record(!isWaiting || made.deferredCount === 0, "what its transactions need is busy.");
      } catch (error) {
        record(false, "making it fails; the log says how.");
        throw error;
      }
    },
    pauseMs,
    onError,
  );
}
