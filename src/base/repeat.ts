/** Work that is done again and again, never twice at a time. */

export interface Repetition {
  /** Ends it, after what is under way. */
  stop(): Promise<void>;
}

/**
 * Repeats work, with a pause before each time.
 *
 * @param onError hears when it was rejected; it is repeated all the same.
 * @param firstPauseMs the pause before the first time, where it is another one.
 */
export function repeat(
  work: () => Promise<unknown>,
  pauseMs: number,
  onError: (error: unknown) => void,
  firstPauseMs = pauseMs,
): Repetition {
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  let underWay: Promise<void> = Promise.resolve();

  async function once(): Promise<void> {
    try {
      await work();
    } catch (error) {
      onError(error);
    }
    schedule(pauseMs);
  }

  function schedule(afterMs: number): void {
    if (!isStopped) {
      timer = setTimeout(() => {
        underWay = once();
      }, afterMs);
    }
  }

  schedule(firstPauseMs);
  return {
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await underWay;
    },
  };
}
