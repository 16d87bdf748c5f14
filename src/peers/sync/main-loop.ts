/**
 * The node's main loop: at each tick it runs its tasks, all of them, whatever one of them does. A task that throws is
 * counted and logged; a task that hangs is left behind at the tick's deadline, and not started again before it ends.
 */

export interface LoopTask {
  readonly name: string;
  readonly run: () => Promise<void> | void;
}

export interface MainLoopDeps {
  readonly intervalMs: number;
  /** How long the tasks of one tick are waited for. */
  readonly tickDeadlineMs: number;
  readonly tasks: readonly LoopTask[];
  readonly nowMs: () => number;
  readonly onTaskError: (task: string, error: unknown) => void;
  /** Hears when the loop dies (why) and when it lives again (undefined). */
  readonly onLife: (death: string | undefined) => void;
}

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
export function createMainLoop(deps: MainLoopDeps): MainLoop {
  const { intervalMs, tickDeadlineMs, nowMs } = deps;
  const runTasks = createTaskRunner(deps);
  const liveness = createLiveness(deps);
  let iterations = 0n;
  let nextTick: NodeJS.Timeout | undefined;
  let tickUnderWay: Promise<void> = Promise.resolve();

  async function tick(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, tickDeadlineMs);
    });
    await Promise.race([runTasks(), tooLate]);
    clearTimeout(timer);
    iterations++;
    liveness.beat();
    if (liveness.exitReason() === undefined) {
      nextTick = setTimeout(schedule, intervalMs);
    }
  }

  function schedule(): void {
    tickUnderWay = tick();
  }

  return {
    start() {
      liveness.start();
      schedule();
    },
    async stop(reason) {
      if (liveness.exit(reason)) {
        clearTimeout(nextTick);
        await tickUnderWay;
      }
    },
    heartbeat() {
      const lastTickMs = liveness.lastBeatMs();
      return {
        heartbeatAgeS: lastTickMs === undefined ? undefined : Math.max(0, nowMs() - lastTickMs) / 1000,
        iterationsTotal: iterations,
        exited: liveness.exitReason() !== undefined,
        exitReason: liveness.exitReason(),
      };
    },
    isDead: () => liveness.isDead(),
  };
}

/** Builds the function that runs every task that is not running still; it never rejects. */
function createTaskRunner({ tasks, onTaskError }: MainLoopDeps): () => Promise<unknown> {
  const running = new Set<string>();

  async function run(task: LoopTask): Promise<void> {
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

  return () => Promise.all(tasks.map(run));
}

/** Whether the loop is alive, told on each change: by its ticks, and by a watchdog where there are none. */
function createLiveness({ intervalMs, nowMs, onLife }: MainLoopDeps) {
  const deadAfterMs = Math.max(3 * intervalMs, 30_000);
  let startedMs: number | undefined;
  let lastBeatMs: number | undefined;
  let exitReason: string | undefined;
  let reportedDead = false;
  let watchdog: NodeJS.Timeout | undefined;

  function isDead(): boolean {
    const sinceMs = lastBeatMs ?? startedMs;
    return exitReason !== undefined || (sinceMs !== undefined && nowMs() - sinceMs > deadAfterMs);
  }

  function report(): void {
    const dead = isDead();
    if (dead !== reportedDead) {
      reportedDead = dead;
      onLife(dead ? (exitReason ?? `no tick for more than ${deadAfterMs / 1000} s`) : undefined);
    }
  }

  return {
    isDead,
    report,
    lastBeatMs: () => lastBeatMs,
    exitReason: () => exitReason,
    start() {
      startedMs = nowMs();
      watchdog = setTimeout(report, deadAfterMs + 1).unref();
    },
    beat() {
      lastBeatMs = nowMs();
      report();
      if (exitReason === undefined) {
        watchdog?.refresh();
      }
    },
    /** False when it has ended already, or was never started. */
    exit(reason: string): boolean {
      const isRunning = startedMs !== undefined && exitReason === undefined;
      exitReason = isRunning ? reason : exitReason;
      if (isRunning) {
        clearTimeout(watchdog);
        report();
      }
      return isRunning;
    },
  };
}
