/** Types that the benchmarks share. */
import type { ServerProcess } from "./servers/server-process.js";

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
  /** Lines to print instead of the figures. */
  readonly details?: readonly string[];
  /** True if the result violates a limit, so that the run ends with exit code 1. */
  readonly isViolated?: boolean;
}

/** Row with the name of its suite. */
export interface SuiteRow extends Row {
  readonly suite: string;
}

/** Settings of every benchmark: the options of the command line, of which each uses some. */
export interface BenchSettings {
  /** Number of rounds; the printed figures are medians. */
  readonly rounds: number;
  /** Duration of one measurement, in seconds. */
  readonly seconds: number;
  /** Numbers of what is loaded, synchronized or repeated. */
  readonly programs: number;
  readonly leaves: number;
  readonly blocks: number;
  readonly chain: number;
  readonly transactions: number;
  readonly changes: number;
  readonly minutes: number;
  /** Seed of hostile transactions. Default: random. */
  readonly seed?: number;
  /** Directory of another, built checkout, which is measured in the same rounds. */
  readonly against?: string;
  /** Part of the names of the attacks to run. Default: all. */
  readonly only?: string;
  /** Variant of the attacked node: its options of these names. Default: those of a node. */
  readonly workers?: string;
  readonly edge?: string;
  readonly memory?: number;
  /** HTTP version of the clients of an attacked node, 1 or 2. Default: 1. */
  readonly http?: 1 | 2;
  /** True to serve and attack with TLS. */
  readonly tls?: boolean;
  /** True to measure each flood also while it meets another process. */
  readonly control?: boolean;
  /** Empty directory. */
  readonly directory: string;
  /** Flags that start a node without data, with the sample genesis and one peer. */
  readonly flags: readonly string[];
  /** Prints progress. */
  readonly say: (what: string) => void;
}

/** Settings of a benchmark that uses a running node, and another build of it, if one is given. */
export interface BenchContext extends BenchSettings {
  readonly node: ServerProcess;
  readonly before: ServerProcess | undefined;
}
