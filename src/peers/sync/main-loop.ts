/**
 * Main loop of the node: runs its periodic tasks. Each tick starts all tasks at the same time. Errors of tasks are reported. A task
 * that exceeds the deadline of the tick continues, and is not started again until it has finished.
 */

export interface LoopTask {
  readonly name: string;
  readonly run: () => Promise<void> | void;
}

export interface MainLoopDeps {
  readonly intervalMs: number;
  /** Time in milliseconds to wait for the tasks of one tick. */
  readonly tickDeadlineMs: number;
  readonly tasks: readonly LoopTask[];
  readonly nowMs: () => number;
  readonly onTaskError: (task: string, error: unknown) => void;
  /** Called with a reason when the loop stalls or exits, and with undefined when it ticks again. */
  readonly onLivenessChange: (death: string | undefined) => void;
}

export interface MainLoop {
  /** Starts the loop. The first tick follows at once. */
  start(): void;
  /** Stops the loop and waits for the tick in progress. */
  stop(reason: string): Promise<void>;
  /** Returns the age of the last tick and other liveness data, as the contract defines them. */
  heartbeat(): {
    readonly heartbeatAgeS: number | undefined;
    readonly iterationsTotal: bigint;
    readonly exited: boolean;
    readonly exitReason: string | undefined;
  };
  /**
   * Returns true if the loop has exited, or if the last tick is older than max(3 intervals, 30 s). False before the
   * start.
   */
  isStalled(): boolean;
}

/** Creates the main loop. It does nothing until `start` is called. */
export function createMainLoop(deps: MainLoopDeps): MainLoop {
  const { intervalMs, tickDeadlineMs, nowMs } = deps;
  const runTasks = createTaskRunner(deps);
  const liveness = createLiveness(deps);
  let iterations = 0n;
  let nextTick: NodeJS.Timeout | undefined;
  let currentTick: Promise<void> = Promise.resolve();

  async function tick(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, tickDeadlineMs);
    });
    await Promise.race([runTasks(), deadline]);
    clearTimeout(timer);
    iterations++;
    liveness.beat();
    if (liveness.exitReason() === undefined) {
      nextTick = setTimeout(schedule, intervalMs);
    }
  }

  function schedule(): void {
    currentTick = tick();
  }

  return {
    start() {
      liveness.start();
      schedule();
    },
    async stop(reason) {
      if (liveness.exit(reason)) {
        clearTimeout(nextTick);
        await currentTick;
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
    isStalled: () => liveness.isStalled(),
  };
}

/** Creates the function that runs every task that is not still running. The function never rejects. */
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

/** Tracks the liveness of the loop, and reports each change: on ticks, and by a watchdog if ticks stop. */
function createLiveness({ intervalMs, nowMs, onLivenessChange }: MainLoopDeps) {
  const stalledAfterMs = Math.max(3 * intervalMs, 30_000);
  let startedMs: number | undefined;
  let lastBeatMs: number | undefined;
  let exitReason: string | undefined;
  let reportedStalled = false;
  let watchdog: NodeJS.Timeout | undefined;

  function isStalled(): boolean {
    const sinceMs = lastBeatMs ?? startedMs;
    return exitReason !== undefined || (sinceMs !== undefined && nowMs() - sinceMs > stalledAfterMs);
  }

  function report(): void {
    const stalled = isStalled();
    if (stalled !== reportedStalled) {
      reportedStalled = stalled;
      onLivenessChange(stalled ? (exitReason ?? `no tick for more than ${stalledAfterMs / 1000} s`) : undefined);
    }
  }

  return {
    isStalled,
    report,
    lastBeatMs: () => lastBeatMs,
    exitReason: () => exitReason,
    start() {
      startedMs = nowMs();
      watchdog = setTimeout(report, stalledAfterMs + 1).unref();
    },
    beat() {
      lastBeatMs = nowMs();
      report();
      if (exitReason === undefined) {
        watchdog?.refresh();
      }
    },
    /** Records the end of the loop. Returns false if the loop has already exited or was never started. */
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
