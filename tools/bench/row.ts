/** What the benchmarks share. */
import type { ServerProcess } from "./server-process.js";

/** What was measured of one thing. */
export interface Result {
  /** How fast it is as a part of the baseline: 1 is as fast, 2 twice as fast. */
  readonly ratio?: number;
  /** The lowest and the highest ratio of a round, where both were measured in turns. */
  readonly spread?: { readonly low: number; readonly high: number };
  /** By what is measured, with its unit. */
  readonly figures: Readonly<Record<string, number>>;
  /** Why there are no figures, or not all of them. */
  readonly note?: string;
}

/** A result with its name. */
export interface Row extends Result {
  readonly name: string;
  /** What the ratio compares with; none where there is nothing to compare with. */
  readonly baseline?: string;
  /** The same of the other build, where there is one. */
  readonly before?: Result;
}

/** A row, and the suite that it is of. */
export interface SuiteRow extends Row {
  readonly suite: string;
}

/** What every benchmark gets. */
export interface BenchSettings {
  /** How often each measurement is repeated; medians are shown. */
  readonly rounds: number;
  /** Length of one measurement. */
  readonly seconds: number;
  /** Tells of progress. */
  readonly say: (what: string) => void;
}

/** What a benchmark of a running node gets. */
export interface BenchContext extends BenchSettings {
  /** With the sample genesis and one peer. */
  readonly node: ServerProcess;
}

/** What a benchmark gets that makes a node of its own. */
export interface OwnNodeBench extends BenchSettings {
  /** An empty directory. */
  readonly directory: string;
}
