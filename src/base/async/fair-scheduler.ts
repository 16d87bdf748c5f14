/**
 * Fair use of the event loop. A task runs at once while the tick has time left. Otherwise it waits, and flows take
 * turns: a flow with a thousand tasks delays the task of another flow by one task, not by a thousand.
 */

interface Task {
  readonly run: (item: never) => void;
  readonly item: unknown;
}

/** Source of tasks, such as a client address. */
export class Flow {
  /** Tasks that wait, the next one first. */
  readonly tasks: Task[] = [];
}

/** Time that tasks may use in one tick of the event loop, in milliseconds. */
const maxTickMs = 5;
/** Number of tasks in a tick before their time is measured: a tick of an idle process has fewer, and costs nothing. */
const unmeasuredTasks = 8;

export class FairScheduler {
  /** Flows that have tasks, the next one first. */
  private readonly flows: Flow[] = [];
  private isDraining = false;
  /** Tasks that ran at once in this tick. */
  private ranAtOnce = 0;
  /** Time of the last unmeasured task of this tick, on the clock of `performance.now()`. */
  private sinceMs = 0;

  /** @param maxTasks limit on the deferred tasks of one tick, for tasks that cause work after their end. */
  constructor(private readonly maxTasks = Infinity) {}

  /** Runs a task now if the tick has time left and no task waits, or else in a later tick. */
  run<T>(flow: Flow, run: (item: T) => void, item: T): void {
    if (this.hasTime()) {
      run(item);
    } else {
      this.defer(flow, run, item);
    }
  }

  /** Runs a task in a later tick. */
  defer<T>(flow: Flow, run: (item: T) => void, item: T): void {
    flow.tasks.push({ run, item });
    if (flow.tasks.length === 1) {
      this.flows.push(flow);
    }
    if (!this.isDraining) {
      this.isDraining = true;
      setImmediate(this.drain);
    }
  }

  private hasTime(): boolean {
    if (this.flows.length > 0) {
      return false;
    }
    this.ranAtOnce++;
    if (this.ranAtOnce > unmeasuredTasks) {
      return performance.now() - this.sinceMs < maxTickMs;
    }
    if (this.ranAtOnce === unmeasuredTasks) {
      this.sinceMs = performance.now();
      setImmediate(this.endTick);
    }
    return true;
  }

  private readonly endTick = (): void => {
    this.ranAtOnce = 0;
  };

  private readonly drain = (): void => {
    const sinceMs = performance.now();
    try {
      let left = this.maxTasks;
      while (left > 0 && this.flows.length > 0) {
        this.runNext();
        left = performance.now() - sinceMs < maxTickMs ? left - 1 : 0;
      }
    } finally {
      this.isDraining = this.flows.length > 0;
      if (this.isDraining) {
        setImmediate(this.drain);
      }
    }
  };

  /** Runs the next task of the next flow. */
  private runNext(): void {
    const flow = this.flows.shift()!;
    const { run, item } = flow.tasks.shift()!;
    if (flow.tasks.length > 0) {
      this.flows.push(flow);
    }
    run(item as never);
  }
}

/**
 * Creates a function that waits for a turn, for work that would run long without waiting for anything. Each tick of the
 * event loop has `perTick` turns, and keys, such as client addresses, take turns.
 */
export function createFairTurns(perTick: number): (key: string) => Promise<void> {
  const scheduler = new FairScheduler(perTick);
  /** Flows of the keys that wait. */
  const flows = new Map<string, Flow>();
  return (key) =>
    new Promise((resolve) => {
      const flow = flows.get(key) ?? new Flow();
      flows.set(key, flow);
      const giveTurn = (): void => {
        if (flow.tasks.length === 0) {
          flows.delete(key);
        }
        resolve();
      };
      scheduler.defer(flow, giveTurn, undefined);
    });
}
