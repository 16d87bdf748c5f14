/**
 * Limits the duration of a task in a pool with one thread, and the start of a replacement thread. Piscina's own limit,
 * an abort signal, would include the waiting time and reorder tasks (docs/decisions/0007-verification-in-threads.md).
 */
import type { ThreadPool } from "../base/async/thread-pool.js";

/** Limits in milliseconds, and a callback for the case that a thread cannot be replaced. */
export interface ThreadMonitorDeps {
  readonly taskWithinMs: number;
  readonly startWithinMs: number;
  /** Called once if the pool is no longer usable. */
  readonly onBroken: (error: Error) => void;
}

/** Monitor of the thread. Tasks must run in the order in which they are submitted. */
export interface ThreadMonitor {
  /** Records that a task was submitted. */
  start(): void;
  /**
   * Records that the oldest task finished. Returns true if the monitor ended the thread because the task took too long.
   */
  end(): boolean;
  stop(): void;
}

/** Monitors a pool. The caller waits for the start of the first thread. */
export function monitorThread(pool: ThreadPool, deps: ThreadMonitorDeps): ThreadMonitor {
  const { taskWithinMs, startWithinMs, onBroken } = deps;
  let pendingTasks = 0;
  /** True while a thread can run tasks; false while a replacement starts. */
  let hasThread = true;
  let timedOut = false;
  let isStopped = false;
  let timer: NodeJS.Timeout | undefined;

  /** Stops the current timer, and starts one for the present activity: the start of a thread, or a task. */
  function restartTimer(): void {
    clearTimeout(timer);
    if (isStopped) {
      return;
    }
    if (!hasThread) {
      timer = setTimeout(() => fail(`its thread did not start within ${startWithinMs / 1000} s`), startWithinMs);
    } else if (pendingTasks > 0) {
      timer = setTimeout(() => {
        timedOut = true;
        void pool.threads[0]?.terminate();
      }, taskWithinMs);
    }
  }

  function fail(why: string): void {
    if (!isStopped) {
      stop();
      onBroken(new Error(why));
    }
  }

  function stop(): void {
    isStopped = true;
    clearTimeout(timer);
  }

  pool.on("workerDestroy", () => {
    if (!hasThread) {
      fail("its thread ended while it started");
    }
    hasThread = false;
    restartTimer();
  });
  pool.on("workerCreate", () => {
    hasThread = true;
    restartTimer();
  });
  return {
    start() {
      pendingTasks++;
      if (pendingTasks === 1) {
        restartTimer();
      }
    },
    end() {
      const hadTimedOut = timedOut;
      timedOut = false;
      pendingTasks--;
      restartTimer();
      return hadTimedOut;
    },
    stop,
  };
}
