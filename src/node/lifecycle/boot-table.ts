/**
 * The boot as a table. Each row says what it needs of the rows before it and what it provides to those after it, and
 * the compiler refuses a row that needs what nobody provides by then. The order of the rows is the order of the boot;
 * `/health` counts those that are steps; a dormant node leaves out those that wait, and takes them when it wakes.
 */
import { SubsystemStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import type { BootProgress } from "../../health/boot-progress.js";
import { isSubsystemName, type Subsystems } from "../../health/subsystems.js";

type Names<C> = keyof C & string;
/** What a row's work gives: something under each name that it provides. */
type Given<P extends string> = [P] extends [never] ? unknown : Readonly<Record<P, unknown>>;

/** Something that is made between two steps, and cannot be left out. */
export interface Part<C, N extends Names<C>, P extends string, R> {
  readonly name: string;
  readonly needs: readonly N[];
  readonly provides: readonly P[];
  readonly run: (needs: Pick<C, N>) => R | Promise<R>;
}

/** A step that `/health` counts; one that has the name of a subsystem moves that subsystem. */
export interface Step<C, N extends Names<C>, P extends string, R> extends Part<C, N, P, R> {
  /** `wait`: a dormant node leaves it out until it wakes. */
  readonly whenDormant?: "run" | "wait";
  /** `go on`: the node can live without it. Otherwise the boot ends with its failure. */
  readonly whenFailed?: WhenFailed;
  /** Why it is left out for good: the operator has not switched it on. Its subsystem shows as not enabled. */
  readonly notEnabled?: (needs: Pick<C, N>) => string | undefined;
  /** Why it is left out for good: there is nothing to do it with. */
  readonly notPossible?: (needs: Pick<C, N>) => string | undefined;
  /** What it provides when it was left out or failed. */
  readonly otherwise?: (needs: Pick<C, N>) => R;
}

/** A subsystem that another process runs: this node has a step for it, and nothing to do in it. */
export interface Elsewhere {
  readonly name: string;
  /** What is said of it until the other process reports. */
  readonly reason: string;
  /** `wait`: while the node is dormant, that is said of it instead. */
  readonly whenDormant: "run" | "wait";
}

/** A row, as the runner and the documents see it. */
export interface Row {
  readonly kind: "step" | "part" | "elsewhere";
  readonly name: string;
  readonly needs: readonly string[];
  readonly provides: readonly string[];
  readonly whenDormant: "run" | "wait";
}

/** What becomes of a boot whose step has failed, for any error or by the error. */
type WhenFailed = "end" | "go on" | ((error: unknown) => "end" | "go on");

interface RunnableRow extends Row {
  readonly whenFailed: WhenFailed;
  readonly notEnabled?: (context: object) => string | undefined;
  readonly notPossible?: (context: object) => string | undefined;
  readonly otherwise?: (context: object) => unknown;
  readonly run: (context: object) => unknown;
}

/** A table; `C` is what its rows provide together with what the boot begins with. */
export class BootTable<C extends object> {
  private constructor(readonly rows: readonly Row[]) {}

  /** A table without rows, for a boot that begins with a `C`. */
  static of<C extends object>(): BootTable<C> {
    return new BootTable<C>([]);
  }

  /** Adds a step. */
  step<N extends Names<C>, P extends string, R extends Given<P>>(
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
  part<N extends Names<C>, P extends string, R extends Given<P>>(
    part: Part<C, N, Exclude<P, keyof C>, R>,
  ): BootTable<C & Pick<R, P & keyof R>> {
    return this.add({ ...(part as unknown as RunnableRow), kind: "part", whenDormant: "run", whenFailed: "end" });
  }

  /** Adds the step of a subsystem that another process runs, with what is said of it. */
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

/** How many steps of a table `/health` counts. */
export function countSteps(rows: readonly Row[]): number {
  return rows.filter(({ kind }) => kind !== "part").length;
}

/** What a boot needs beside its table. */
export interface BootDeps<C extends object> {
  readonly table: BootTable<C>;
  readonly progress: BootProgress;
  readonly subsystems: Subsystems;
  readonly isDormant: () => boolean;
  /** Ends the boot, and what is made up for after it. */
  readonly signal: AbortSignal;
}

/** A boot. */
export interface Boot<C extends object> {
  /**
   * Takes the rows in their order.
   *
   * @param given what the boot begins with.
   * @throws what a row throws that is needed; the signal's reason at once when it is aborted.
   */
  run(given: object): Promise<C>;
  /** Takes the rows that were left out because the node was dormant, in their order. */
  makeUp(): Promise<void>;
}

/** A boot of a table, not begun. */
export function createBoot<C extends object>(deps: BootDeps<C>): Boot<C> {
  const { table, progress, subsystems, isDormant, signal } = deps;
  const rows = table.rows as readonly RunnableRow[];
  let context: object = {};
  let waiting: readonly RunnableRow[] = [];

  const needsOf = (row: RunnableRow): object =>
    Object.fromEntries(row.needs.map((name) => [name, context[name as keyof typeof context]]));

  function leaveOut(row: RunnableRow, reason: string): unknown {
    progress.leaveOut(row.name, reason);
    return row.otherwise?.(needsOf(row));
  }

  /** What the row provides. */
  async function take(row: RunnableRow): Promise<unknown> {
    if (row.kind === "part") {
      return await row.run(needsOf(row));
    }
    const notEnabled = row.notEnabled?.(needsOf(row));
    if (notEnabled !== undefined && isSubsystemName(row.name)) {
      subsystems.set(row.name, { enabled: false });
    }
    const reason = notEnabled ?? row.notPossible?.(needsOf(row));
    const isWanted = row.kind === "elsewhere" || reason === undefined;
    if (row.whenDormant === "wait" && isDormant() && isWanted) {
      waiting = [...waiting, row];
      return leaveOut(row, "The node is dormant: it has no peers.");
    }
    if (reason !== undefined) {
      return leaveOut(row, reason);
    }
    try {
      return await progress.take(row.name, () => row.run(needsOf(row)));
    } catch (error) {
      const { whenFailed } = row;
      if ((typeof whenFailed === "function" ? whenFailed(error) : whenFailed) === "end") {
        throw error;
      }
      return row.otherwise?.(needsOf(row));
    }
  }

  return {
    async run(given) {
      context = { ...given };
      for (const row of rows) {
        signal.throwIfAborted();
        const provided = await unlessAborted(signal, take(row));
        for (const name of row.provides) {
          context = { ...context, [name]: (provided as Readonly<Record<string, unknown>>)[name] };
        }
      }
      return context as C;
    },

    async makeUp() {
      const left = waiting;
      waiting = [];
      for (const row of left) {
        if (signal.aborted) {
          return;
        }
        if (row.kind === "step") {
          // There is no boot any more that could end with it.
          await progress.take(row.name, () => row.run(needsOf(row))).catch(() => undefined);
        } else if (isSubsystemName(row.name) && subsystems.get(row.name).status === SubsystemStatus.SKIPPED) {
          subsystems.set(row.name, { extra: { reason: row.notEnabled?.({}) } });
        }
      }
    },
  };
}

/** The work's outcome, or the signal's reason as soon as it is aborted; what is still begun then is ended by its stop. */
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
