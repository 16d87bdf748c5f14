/**
 * Fair use of the event loop. A task runs at once while the tick has time left. Otherwise it waits, and flows take
 * turns: a flow with a thousand tasks delays the task of another flow by one task, not by a thousand.
 */

interface Task {
  readonly run: (item: never) => void;
  readonly item: unknown;
  readonly endsTick: boolean;
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

  /** Runs a task now if the tick has time left and no task waits, or else in a later tick. */
  run<T>(flow: Flow, run: (item: T) => void, item: T): void {
    if (this.hasTime()) {
      run(item);
    } else {
      this.defer(flow, run, item);
    }
  }

  /**
   * Runs a task in a later tick.
   *
   * @param endsTick true if no other task should run in that tick, because this one causes work after its end.
   */
  defer<T>(flow: Flow, run: (item: T) => void, item: T, endsTick = false): void {
    flow.tasks.push({ run, item, endsTick });
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
      let isOver = false;
      while (!isOver && this.flows.length > 0) {
        isOver = this.runNext() || performance.now() - sinceMs >= maxTickMs;
      }
    } finally {
      this.isDraining = this.flows.length > 0;
      if (this.isDraining) {
        setImmediate(this.drain);
      }
    }
  };

  /** Runs the next task of the next flow. Returns true if the task ends the tick. */
  private runNext(): boolean {
    const flow = this.flows.shift()!;
    const { run, item, endsTick } = flow.tasks.shift()!;
    if (flow.tasks.length > 0) {
      this.flows.push(flow);
    }
    run(item as never);
    return endsTick;
  }
}
