/**
 * Main loop of the node: runs its periodic tasks. Each tick starts all tasks at the same time. Errors of tasks are reported. A task
 * that exceeds the deadline of the tick continues, and is not started again until it has finished.
 */
import { setTimeout as sleep } from "node:timers/promises";

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
  /** Called at the end of each tick. */
  readonly onTick: () => void;
  /** Called with a reason when the loop stalls or exits, and with undefined when it ticks again. */
  readonly onLivenessChange: (death: string | undefined) => void;
}

export type MainLoop = ReturnType<typeof createMainLoop>;

/** Creates the main loop. It does nothing until `start` is called. */
export function createMainLoop(deps: MainLoopDeps) {
  const { intervalMs, tickDeadlineMs, tasks, nowMs, onTaskError, onTick, onLivenessChange } = deps;
  const stalledAfterMs = Math.max(3 * intervalMs, 30_000);
  const running = new Set<LoopTask>();
  let iterations = 0n;
  let startedMs: number | undefined;
  let lastTickMs: number | undefined;
  let exitReason: string | undefined;
  let isReportedStalled = false;
  let watchdog: NodeJS.Timeout | undefined;
  let nextTick: NodeJS.Timeout | undefined;
  let currentTick: Promise<void> = Promise.resolve();

  async function runTask(task: LoopTask): Promise<void> {
    if (running.has(task)) {
      return;
    }
    running.add(task);
    try {
      await task.run();
    } catch (error) {
      onTaskError(task.name, error);
    } finally {
      running.delete(task);
    }
  }

  async function tick(): Promise<void> {
    await Promise.race([Promise.all(tasks.map(runTask)), sleep(tickDeadlineMs, undefined, { ref: false })]);
    iterations++;
    lastTickMs = nowMs();
    reportLiveness();
    onTick();
    if (exitReason === undefined) {
      watchdog?.refresh();
      nextTick = setTimeout(startTick, intervalMs);
    }
  }

  function startTick(): void {
    currentTick = tick();
  }

  /**
   * Returns true if the loop has exited, or if the last tick is older than max(3 intervals, 30 s). False before the
   * start.
   */
  function isStalled(): boolean {
    const sinceMs = lastTickMs ?? startedMs;
    return exitReason !== undefined || (sinceMs !== undefined && nowMs() - sinceMs > stalledAfterMs);
  }

  function reportLiveness(): void {
    const stalled = isStalled();
    if (stalled !== isReportedStalled) {
      isReportedStalled = stalled;
      onLivenessChange(stalled ? (exitReason ?? `no tick for more than ${stalledAfterMs / 1000} s`) : undefined);
    }
  }

  return {
    isStalled,
    /** Starts the loop. The first tick follows at once. */
    start(): void {
      startedMs = nowMs();
      watchdog = setTimeout(reportLiveness, stalledAfterMs + 1).unref();
      startTick();
    },
    /** Stops the loop and waits for the tick in progress. */
    async stop(reason: string): Promise<void> {
      if (startedMs !== undefined && exitReason === undefined) {
        exitReason = reason;
        clearTimeout(watchdog);
        reportLiveness();
        clearTimeout(nextTick);
        await currentTick;
      }
    },
    /** Returns the age of the last tick and other liveness data, as the contract defines them. */
    heartbeat: () => ({
      heartbeatAgeS: lastTickMs === undefined ? undefined : Math.max(0, nowMs() - lastTickMs) / 1000,
      iterationsTotal: iterations,
      exited: exitReason !== undefined,
      exitReason,
    }),
  };
}
