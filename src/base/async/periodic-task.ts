/** Work that is done again and again, never twice at a time. */

export interface PeriodicTask {
  /** Does it at once, after what is under way, without the pause. */
  now(): void;
  /** Ends it, after what is under way. */
  stop(): Promise<void>;
}

/**
 * Repeats work, with a pause before each time.
 *
 * @param onError hears when it was rejected; it is repeated all the same.
 * @param firstPauseMs the pause before the first time, where it is another one.
 */
export function startPeriodicTask(
  work: () => Promise<unknown>,
  pauseMs: number,
  onError: (error: unknown) => void,
  firstPauseMs = pauseMs,
): PeriodicTask {
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  let isUnderWay = false;
  /** Somebody wants it again, while it is under way. */
  let isWanted = false;
  let underWay: Promise<void> = Promise.resolve();

  async function once(): Promise<void> {
    isUnderWay = true;
    try {
      await work();
    } catch (error) {
      onError(error);
    }
    isUnderWay = false;
    schedule(isWanted ? 0 : pauseMs);
    isWanted = false;
  }

  function schedule(afterMs: number): void {
    if (!isStopped) {
      timer = setTimeout(begin, afterMs);
    }
  }

  function begin(): void {
    underWay = once();
  }

  schedule(firstPauseMs);
  return {
    now() {
      if (isUnderWay) {
        isWanted = true;
      } else if (!isStopped) {
        clearTimeout(timer);
        begin();
      }
    },
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await underWay;
    },
  };
}
