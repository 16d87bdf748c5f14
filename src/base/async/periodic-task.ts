/** Periodic work with a pause between runs. Runs never overlap. */

export type PeriodicTask = ReturnType<typeof startPeriodicTask>;

/**
 * Starts a periodic task. The pause counts from the end of a run to the start of the next.
 *
 * @param onError called when a run rejects; the task continues.
 * @param firstPauseMs pause before the first run, if it differs from `pauseMs`.
 */
export function startPeriodicTask(
  work: () => Promise<unknown>,
  pauseMs: number,
  onError: (error: unknown) => void,
  firstPauseMs = pauseMs,
) {
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  let isRunning = false;
  /** True if `now()` was called during the run in progress. */
  let isRequested = false;
  let currentRun: Promise<void> = Promise.resolve();

  async function runOnce(): Promise<void> {
    isRunning = true;
    try {
      await work();
    } catch (error) {
      onError(error);
    }
    isRunning = false;
    schedule(isRequested ? 0 : pauseMs);
    isRequested = false;
  }

  function startRun(): void {
    currentRun = runOnce();
  }

  function schedule(afterMs: number): void {
    if (!isStopped) {
      timer = setTimeout(startRun, afterMs);
    }
  }

  schedule(firstPauseMs);
  return {
    /** Starts a run without waiting for the pause, or directly after the run in progress. */
    now(): void {
      if (isRunning) {
        isRequested = true;
      } else if (!isStopped) {
        clearTimeout(timer);
        startRun();
      }
    },
    /** Stops the task. Resolves when the run in progress has ended. */
    async stop(): Promise<void> {
      isStopped = true;
      clearTimeout(timer);
      await currentRun;
    },
  };
}
