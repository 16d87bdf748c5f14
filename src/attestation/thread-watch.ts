/**
 * Watches the one thread of a pool: a task may take so long, and so may the start of a thread that takes the place of one
 * that ended. Piscina's own way to bound a task, a signal, would count the time that it waits, too, and take tasks out
 * of their order (docs/decisions/0007-verification-in-threads.md).
 */
import type { ThreadPool } from "../base/async/thread-pool.js";

/** The bounds, and who hears that a thread could not be replaced. */
export interface ThreadWatchDeps {
  readonly taskWithinMs: number;
  readonly startWithinMs: number;
  /** Hears, once, that the pool is of no more use. */
  readonly onBroken: (error: Error) => void;
}

/** A watch. Tasks are done in the order in which they are handed in. */
export interface ThreadWatch {
  /** A task is handed in. */
  begin(): void;
  /** The first of the tasks is over; true when that is because its thread was ended for taking too long. */
  end(): boolean;
  stop(): void;
}

/** Watches a pool whose first thread is somebody else's to wait for. */
export function watchThread(pool: ThreadPool, deps: ThreadWatchDeps): ThreadWatch {
  const { taskWithinMs, startWithinMs, onBroken } = deps;
  let openTasks = 0;
  /** Whether there is a thread to work; otherwise another one is being started. */
  let isUp = true;
  let isLate = false;
  let isStopped = false;
  let clock: NodeJS.Timeout | undefined;

  /** The time that was running does not count any more; that of what the thread does now begins. */
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
    begin() {
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
