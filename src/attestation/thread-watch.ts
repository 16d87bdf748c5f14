/**
 * Limits the duration of a task in a pool with one thread, and the start of a replacement thread. Piscina's own limit,
 * an abort signal, would include the waiting time and reorder tasks (docs/decisions/0007-verification-in-threads.md).
 */
import type { ThreadPool } from "../base/async/thread-pool.js";

/** Limits in milliseconds, and a callback for the case that a thread cannot be replaced. */
export interface ThreadWatchDeps {
  readonly taskWithinMs: number;
  readonly startWithinMs: number;
  /** Called once if the pool is no longer usable. */
  readonly onBroken: (error: Error) => void;
}

/** Monitor of the thread. Tasks must run in the order in which they are submitted. */
export interface ThreadWatch {
  /** Records that a task was submitted. */
  start(): void;
  /**
   * Records that the oldest task finished. Returns true if the monitor ended the thread because the task took too long.
   */
  end(): boolean;
  stop(): void;
}

/** Monitors a pool. The caller waits for the start of the first thread. */
export function watchThread(pool: ThreadPool, deps: ThreadWatchDeps): ThreadWatch {
  const { taskWithinMs, startWithinMs, onBroken } = deps;
  let openTasks = 0;
  /** True while a thread can run tasks; false while a replacement starts. */
  let isUp = true;
  let isLate = false;
  let isStopped = false;
  let clock: NodeJS.Timeout | undefined;

  /** Stops the current timer, and starts one for the present activity: the start of a thread, or a task. */
  function restartClock(): void {
    clearTimeout(clock);
    if (isStopped) {
      return;
    }
    if (!isUp) {
      clock = setTimeout(() => giveUp(`its thread did not start within ${startWithinMs / 1000} s`), startWithinMs);
    } else if (openTasks > 0) {
      clock = setTimeout(() => {
        isLate = true;
        void pool.threads[0]?.terminate();
      }, taskWithinMs);
    }
  }

  function giveUp(why: string): void {
    if (!isStopped) {
      stop();
      onBroken(new Error(why));
    }
  }

  function stop(): void {
    isStopped = true;
    clearTimeout(clock);
  }

  pool.on("workerDestroy", () => {
    if (!isUp) {
      giveUp("its thread ended while it started");
    }
    isUp = false;
    restartClock();
  });
  pool.on("workerCreate", () => {
    isUp = true;
    restartClock();
  });
  return {
    start() {
      openTasks++;
      if (openTasks === 1) {
        restartClock();
      }
    },
    end() {
      const wasLate = isLate;
      isLate = false;
      openTasks--;
      restartClock();
      return wasLate;
    },
    stop,
  };
}
