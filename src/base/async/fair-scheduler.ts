/**
 * Fair use of the event loop. A task runs at once while the tick has time left. Otherwise it waits, and flows take
 * turns: a flow with a thousand tasks delays the task of another flow by one task, not by a thousand.
 */

interface Task {
  readonly run: (item: never) => void;
  readonly item: unknown;
}

/**
 * Source of tasks of any number of schedulers, such as a client address, or a connection of one. Flows take turns with
 * others of their parent.
 */
export class Flow {
  constructor(readonly parent?: Flow) {}
}

/** Tasks and flows of a flow that wait in one scheduler. */
interface Waiting {
  readonly parent: Waiting | undefined;
  /** Tasks of the flow itself, the next one first. */
  readonly tasks: Task[];
  /** Flows of the flow that have tasks, the next one first. */
  readonly ready: Waiting[];
  /** True if the parent has this flow among those with tasks. */
  isReady: boolean;
}

const createWaiting = (parent?: Waiting): Waiting => ({ parent, tasks: [], ready: [], isReady: false });

/**
 * Time that tasks may use in one tick of the event loop, in milliseconds. Short ticks cost more, since each writes the
 * responses of all connections. While connections arrive, they are short nevertheless: each accepts one.
 */
const tickMs = { usual: 3, hurried: 1 };
/** Time in milliseconds for which connections count as arriving after one has. */
const hurryMs = 5;
/**
 * Number of tasks in a tick that should be short. A connection takes two, for its first bytes and its request. With fewer
 * than that, connections would be accepted faster than they are served.
 */
const urgentTasks = 4;
/** Number of tasks in a tick before their time is measured: a tick of an idle process has fewer, and costs nothing. */
const unmeasuredTasks = 8;

export class FairScheduler {
  private readonly root = createWaiting();
  private readonly byFlow = new WeakMap<Flow, Waiting>();
  private isDraining = false;
  /** Tasks that ran at once in this tick. */
  private ranAtOnce = 0;
  /** Time of the last unmeasured task of this tick, on the clock of `performance.now()`. */
  private sinceMs = 0;
  private isUrgent = false;
  /** Time of the last call of {@link hurry}, on the clock of `performance.now()`. */
  private hurriedAtMs = -Infinity;
  /** Time of the last tick that ran deferred tasks, or at which the first of them was deferred. */
  private ranAtMs = 0;

  /**
   * @param maxTasks limit on the deferred tasks of one tick, for tasks that cause work after their end.
   * @param paceMs while the next tick is awaited, one task runs for each such time since a tick ran some; 0 for no pace.
   */
  constructor(
    private readonly maxTasks = Infinity,
    private readonly paceMs = 0,
  ) {}

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
    const waiting = this.waitingOf(flow);
    waiting.tasks.push({ run, item });
    for (let next = waiting; next.parent !== undefined && !next.isReady; next = next.parent) {
      next.isReady = true;
      next.parent.ready.push(next);
    }
    if (!this.isDraining) {
      this.isDraining = true;
      this.ranAtMs = this.paceMs === 0 ? 0 : performance.now();
      setImmediate(this.drain);
    }
  }

  /** Waits for a turn of a flow in a later tick. */
  turn(flow: Flow): Promise<void> {
    return new Promise((resolve) => this.defer(flow, resolve, undefined));
  }

  /** Limits the deferred tasks of this tick, or skips them, because the next tick is awaited. */
  hurry(): void {
    this.isUrgent = true;
    this.hurriedAtMs = performance.now();
  }

  private waitingOf(flow: Flow): Waiting {
    let waiting = this.byFlow.get(flow);
    if (waiting === undefined) {
      waiting = createWaiting(flow.parent === undefined ? this.root : this.waitingOf(flow.parent));
      this.byFlow.set(flow, waiting);
    }
    return waiting;
  }

  private hasTime(): boolean {
    if (this.hasTasks()) {
      return false;
    }
    this.ranAtOnce++;
    if (this.ranAtOnce > unmeasuredTasks) {
      return this.isWithinTick(this.sinceMs);
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
    let left = this.maxTasks;
    if (this.isUrgent) {
      this.isUrgent = false;
      left = Math.min(left, this.urgentTasksAt(sinceMs));
    }
    if (left === 0) {
      setImmediate(this.drain);
      return;
    }
    this.ranAtMs = sinceMs;
    try {
      while (left > 0 && this.hasTasks()) {
        const { run, item } = takeTask(this.root);
        run(item as never);
        left = this.isWithinTick(sinceMs) ? left - 1 : 0;
      }
    } finally {
      this.isDraining = this.hasTasks();
      if (this.isDraining) {
        setImmediate(this.drain);
      }
    }
  };

  /** Returns the number of tasks of a tick while the next one is awaited. */
  private urgentTasksAt(nowMs: number): number {
    return this.paceMs === 0 ? urgentTasks : Math.floor((nowMs - this.ranAtMs) / this.paceMs);
  }

  /** Returns true if a tick has time left for tasks of which the first began at this time. */
  private isWithinTick(sinceMs: number): boolean {
    const nowMs = performance.now();
    return nowMs - sinceMs < (nowMs - this.hurriedAtMs < hurryMs ? tickMs.hurried : tickMs.usual);
  }

  private hasTasks(): boolean {
    return this.root.ready.length > 0;
  }
}

/** Removes the next task of a flow, and returns it. */
function takeTask({ tasks, ready }: Waiting): Task {
  const next = ready.shift();
  if (next === undefined) {
    return tasks.shift()!;
  }
  const task = takeTask(next);
  next.isReady = next.tasks.length > 0 || next.ready.length > 0;
  if (next.isReady) {
    ready.push(next);
  }
  return task;
}

/**
 * Creates a function that waits for a turn, for work that would run long without waiting for anything. Each tick of the
 * event loop has `perTick` turns, and keys, such as client addresses, take turns.
 */
export function createFairTurns(perTick: number): (key: string) => Promise<void> {
  const scheduler = new FairScheduler(perTick);
  /** Flows of the keys that wait, with the number of turns for which they do. */
  const flows = new Map<string, { readonly flow: Flow; turns: number }>();
  return async (key) => {
    const entry = flows.get(key) ?? { flow: new Flow(), turns: 0 };
    flows.set(key, entry);
    entry.turns++;
    await scheduler.turn(entry.flow);
    entry.turns--;
    if (entry.turns === 0) {
      flows.delete(key);
    }
  };
}
