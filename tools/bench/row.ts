/** Types that the benchmarks share. */
import type { ServerProcess } from "./server-process.js";

/** Result of one measurement. */
export interface Result {
  /** Speed relative to the baseline: 1 is equal, 2 is twice as fast. */
  readonly ratio?: number;
  /** Lowest and highest ratio of all rounds, if node and baseline were measured alternately. */
  readonly spread?: { readonly low: number; readonly high: number };
  /** Figures by name, with the unit in the name. */
  readonly figures: Readonly<Record<string, number>>;
  /** Reason if some or all figures are missing. */
  readonly note?: string;
}

/** Result with its name. */
export interface Row extends Result {
  readonly name: string;
  /** Baseline of the ratio; undefined if there is none. */
  readonly baseline?: string;
  /** Result of the other build, if there is one. */
  readonly before?: Result;
}

/** Row with the name of its suite. */
export interface SuiteRow extends Row {
  readonly suite: string;
}

/** Parameters of every benchmark. */
export interface BenchSettings {
  /** Number of rounds; the printed figures are medians. */
  readonly rounds: number;
  /** Duration of one measurement, in seconds. */
  readonly seconds: number;
  /** Prints progress. */
  readonly say: (what: string) => void;
}

/** Parameters of a benchmark that uses a running node. */
export interface BenchContext extends BenchSettings {
  /** Node with the sample genesis and one peer. */
  readonly node: ServerProcess;
}

/** Parameters of a benchmark that starts its own node. */
export interface NodeBench extends BenchSettings {
  /** Empty directory. */
  readonly directory: string;
}
