/**
 * Boot of a node as a table of rows. Each row names the values it needs from earlier rows and the values it provides to
 * later rows. A row that needs a value no earlier row provides does not compile. The boot runs the rows in table order.
 * `/health` counts the rows that are steps. A dormant node defers the rows marked `wait` and runs them when it wakes.
 */
import { SubsystemStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import type { BootProgress } from "../../health/boot-progress.js";
import { isSubsystemName, type Subsystems } from "../../health/subsystems.js";

type Names<C> = keyof C & string;
/** Result type of a row: an object with a member for each name that the row provides. */
type Provided<P extends string> = [P] extends [never] ? unknown : Readonly<Record<P, unknown>>;

/** Row that runs between two steps. `/health` does not count it, and it is never skipped. */
export interface Part<C, N extends Names<C>, P extends string, R> {
  readonly name: string;
  readonly needs: readonly N[];
  readonly provides: readonly P[];
  readonly run: (needs: Pick<C, N>) => R | Promise<R>;
}

/** Row that `/health` counts. If it has the name of a subsystem, it also updates the state of that subsystem. */
export interface Step<C, N extends Names<C>, P extends string, R> extends Part<C, N, P, R> {
  /** Behavior on a dormant node: `wait` defers the step until the node wakes. Default: `run`. */
  readonly whenDormant?: "run" | "wait";
  /** Behavior on an error: `go on` continues the boot without the step, `end` fails the boot. Default: `end`. */
  readonly whenFailed?: WhenFailed;
  /**
   * Returns the reason to skip the step if the operator has not enabled it. Its subsystem then shows as not enabled.
   */
  readonly notEnabled?: (needs: Pick<C, N>) => string | undefined;
  /** Returns the reason to skip the step if the node lacks what the step requires. */
  readonly notPossible?: (needs: Pick<C, N>) => string | undefined;
  /** Returns substitutes for the provided values if the step was skipped or failed. */
  readonly otherwise?: (needs: Pick<C, N>) => R;
}

/** Subsystem that another process runs. The node has a step for it, but does no work in that step. */
export interface Elsewhere {
  readonly name: string;
  /** Reason shown for the subsystem until the other process reports its state. */
  readonly reason: string;
  /** `wait`: while the node is dormant, the dormancy is shown as the reason instead. */
  readonly whenDormant: "run" | "wait";
}

/** Row as the runner and the documentation see it. */
export interface Row {
  readonly kind: "step" | "part" | "elsewhere";
  readonly name: string;
  readonly needs: readonly string[];
  readonly provides: readonly string[];
  readonly whenDormant: "run" | "wait";
}

/** Effect of a failed step on the boot: fixed, or chosen by the error. */
type WhenFailed = "end" | "go on" | ((error: unknown) => "end" | "go on");

interface RunnableRow extends Row {
  readonly whenFailed: WhenFailed;
  readonly notEnabled?: (context: object) => string | undefined;
  readonly notPossible?: (context: object) => string | undefined;
  readonly otherwise?: (context: object) => unknown;
  readonly run: (context: object) => unknown;
}

/** Table of rows. `C` is the type of the initial values of the boot together with all values that the rows provide. */
export class BootTable<C extends object> {
  private constructor(readonly rows: readonly Row[]) {}

  /** Creates a table without rows, for a boot whose initial values are a `C`. */
  static of<C extends object>(): BootTable<C> {
    return new BootTable<C>([]);
  }

  /**
   * Adds a step.
   *
   * @throws Error if the step may be skipped or may fail, provides values, and has no `otherwise`.
   */
  step<N extends Names<C>, P extends string, R extends Provided<P>>(
    step: Step<C, N, Exclude<P, keyof C>, R>,
  ): BootTable<C & Pick<R, P & keyof R>> {
    const { whenDormant = "run", whenFailed = "end" } = step;
    const mayBeMissing =
      whenDormant === "wait" || whenFailed !== "end" || step.notEnabled !== undefined || step.notPossible !== undefined;
    if (mayBeMissing && step.provides.length > 0 && step.otherwise === undefined) {
      throw new Error(`Row ${step.name} may be left out, so it has to say what it provides otherwise.`);
    }
    return this.add({ ...(step as unknown as RunnableRow), kind: "step", whenDormant, whenFailed });
  }

  /** Adds a part. */
  part<N extends Names<C>, P extends string, R extends Provided<P>>(
    part: Part<C, N, Exclude<P, keyof C>, R>,
  ): BootTable<C & Pick<R, P & keyof R>> {
    return this.add({ ...(part as unknown as RunnableRow), kind: "part", whenDormant: "run", whenFailed: "end" });
  }

  /** Adds the step of a subsystem that another process runs, with the reason shown for the subsystem. */
  elsewhere({ name, reason, whenDormant }: Elsewhere): BootTable<C> {
    return this.add({
      ...{ kind: "elsewhere", name, needs: [], provides: [], whenDormant, whenFailed: "end" },
      ...{ notEnabled: () => reason, run: () => undefined },
    });
  }

  private add<D extends object>(row: RunnableRow): BootTable<D> {
    return new BootTable<D>([...this.rows, row]);
  }
}

/** Counts the steps of a table, as `/health` does. */
export function countSteps(rows: readonly Row[]): number {
  return rows.filter(({ kind }) => kind !== "part").length;
}

export interface BootDeps<C extends object> {
  readonly table: BootTable<C>;
  readonly progress: BootProgress;
  readonly subsystems: Subsystems;
  readonly isDormant: () => boolean;
  /** Aborts the boot, and the deferred rows that run after it. */
  readonly signal: AbortSignal;
}

export interface Boot<C extends object> {
  /**
   * Runs the rows in table order.
   *
   * @param initial initial values of the boot.
   * @throws the error of a row that the boot cannot do without; the signal's reason as soon as the signal aborts.
   */
  run(initial: object): Promise<C>;
  /** Runs the rows that were deferred because the node was dormant, in table order. */
  runDeferred(): Promise<void>;
}

/** Creates a boot of a table without starting it. */
export function createBoot<C extends object>(deps: BootDeps<C>): Boot<C> {
  const { table, progress, subsystems, isDormant, signal } = deps;
  const rows = table.rows as readonly RunnableRow[];
  let context: object = {};
  let deferred: readonly RunnableRow[] = [];

  const needsOf = (row: RunnableRow): object =>
    Object.fromEntries(row.needs.map((name) => [name, context[name as keyof typeof context]]));

  /** Records that a step is skipped, and returns the substitutes for its values. */
  function skip(row: RunnableRow, reason: string): unknown {
    progress.skip(row.name, reason);
    return row.otherwise?.(needsOf(row));
  }

  /** Runs or skips a row, and returns the values that the row provides. */
  async function runRow(row: RunnableRow): Promise<unknown> {
    if (row.kind === "part") {
      return await row.run(needsOf(row));
    }
    const notEnabled = row.notEnabled?.(needsOf(row));
    if (notEnabled !== undefined && isSubsystemName(row.name)) {
      subsystems.set(row.name, { enabled: false });
    }
    const reason = notEnabled ?? row.notPossible?.(needsOf(row));
    const isEnabled = row.kind === "elsewhere" || reason === undefined;
    if (row.whenDormant === "wait" && isDormant() && isEnabled) {
      deferred = [...deferred, row];
      return skip(row, "The node is dormant: it has no peers.");
    }
    if (reason !== undefined) {
      return skip(row, reason);
    }
    try {
      return await progress.runStep(row.name, () => row.run(needsOf(row)));
    } catch (error) {
      const { whenFailed } = row;
      if ((typeof whenFailed === "function" ? whenFailed(error) : whenFailed) === "end") {
        throw error;
      }
      return row.otherwise?.(needsOf(row));
    }
  }

  return {
    async run(initial) {
      context = initial;
      for (const row of rows) {
        signal.throwIfAborted();
        const provided = await unlessAborted(signal, runRow(row));
        for (const name of row.provides) {
          context = { ...context, [name]: (provided as Readonly<Record<string, unknown>>)[name] };
        }
      }
      return context as C;
    },

    async runDeferred() {
      const due = deferred;
      deferred = [];
      for (const row of due) {
        if (signal.aborted) {
          return;
        }
        if (row.kind === "step") {
          // The boot is over, so an error of the step can no longer end it.
          await progress.runStep(row.name, () => row.run(needsOf(row))).catch(() => undefined);
        } else if (isSubsystemName(row.name) && subsystems.get(row.name).status === SubsystemStatus.SKIPPED) {
          subsystems.set(row.name, { extra: { reason: row.notEnabled?.({}) } });
        }
      }
    },
  };
}

/**
 * Returns the outcome of the work, or throws the signal's reason as soon as the signal aborts. The work itself
 * continues. A shutdown hook that it adds later still runs.
 */
async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason as Error);
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
