/**
 * The node's main loop: at each tick it runs its tasks, all of them, whatever one of them does. A task that throws is
 * counted and logged; a task that hangs is left behind at the tick's deadline, and not started again before it ends.
 */

/** Something to do at each tick. */
export interface LoopTask {
  readonly name: string;
  readonly run: () => Promise<void> | void;
}

/** What the loop needs. */
export interface MainLoopParts {
  readonly intervalMs: number;
  /** How long the tasks of one tick are waited for. */
  readonly tickDeadlineMs: number;
  readonly tasks: readonly LoopTask[];
  readonly nowMs: () => number;
  /** Hears of a task that threw. */
  readonly onTaskError: (task: string, error: unknown) => void;
  /** Hears when the loop dies (why) and when it lives again (undefined). */
  readonly onLife: (death: string | undefined) => void;
}

/** A main loop. */
export interface MainLoop {
  /** Starts the loop; the first tick follows at once. */
  start(): void;
  /** Ends the loop and waits for the tick under way. */
  stop(reason: string): Promise<void>;
  /** Seconds since the last tick and so on, as the contract shows them. */
  heartbeat(): {
    readonly heartbeatAgeS: number | undefined;
    readonly iterationsTotal: bigint;
    readonly exited: boolean;
    readonly exitReason: string | undefined;
  };
  /** It exited, or its last tick is older than max(3 intervals, 30 s). False before the start. */
  isDead(): boolean;
}

/** Builds a loop, not started. */
export function createMainLoop(parts: MainLoopParts): MainLoop {
  const { intervalMs, tickDeadlineMs, tasks, nowMs, onTaskError, onLife } = parts;
  const deadAfterMs = Math.max(3 * intervalMs, 30_000);
  const running = new Set<string>();
  let lastTickMs: number | undefined;
  let startedAtMs: number | undefined;
  let iterations = 0n;
  let exitReason: string | undefined;
  let reportedDead = false;
  let nextTick: NodeJS.Timeout | undefined;
  let watchdog: NodeJS.Timeout | undefined;
  let tickUnderWay: Promise<void> = Promise.resolve();

  async function runTask(task: LoopTask): Promise<void> {
    if (running.has(task.name)) {
      return;
    }
    running.add(task.name);
    try {
      await task.run();
    } catch (error) {
      onTaskError(task.name, error);
    } finally {
      running.delete(task.name);
    }
  }

  async function tick(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, tickDeadlineMs);
    });
    await Promise.race([Promise.all(tasks.map(runTask)), tooLate]);
    clearTimeout(timer);
    lastTickMs = nowMs();
    iterations++;
    reportLife();
    if (exitReason === undefined) {
      watchdog?.refresh();
      nextTick = setTimeout(schedule, intervalMs);
    }
  }

  function schedule(): void {
    tickUnderWay = tick();
  }

  function isDead(): boolean {
    if (exitReason !== undefined) {
      return true;
    }
    const since = lastTickMs ?? startedAtMs;
    return since !== undefined && nowMs() - since > deadAfterMs;
  }

  function reportLife(): void {
    const dead = isDead();
    if (dead !== reportedDead) {
      reportedDead = dead;
      onLife(dead ? (exitReason ?? `no tick for more than ${deadAfterMs / 1000} s`) : undefined);
    }
  }

  return {
    start() {
      startedAtMs = nowMs();
      watchdog = setTimeout(reportLife, deadAfterMs + 1).unref();
      schedule();
    },
    async stop(reason) {
      if (exitReason !== undefined || startedAtMs === undefined) {
        return;
      }
      exitReason = reason;
      clearTimeout(nextTick);
      clearTimeout(watchdog);
      await tickUnderWay;
      reportLife();
    },
    heartbeat: () => ({
      heartbeatAgeS: lastTickMs === undefined ? undefined : Math.max(0, nowMs() - lastTickMs) / 1000,
      iterationsTotal: iterations,
      exited: exitReason !== undefined,
      exitReason,
    }),
    isDead,
  };
}
