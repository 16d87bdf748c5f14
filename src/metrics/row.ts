/** What a row of the table of metrics is. */
import type { SettledRequest } from "./settled-request.js";

/** A value, or one for each value of the first label, and so on for the labels after it. */
export type Values = number | { readonly [labelValue: string]: Values };

interface Row {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
}

/** A metric that is read when somebody asks. A counter is one that somebody else keeps. */
export interface ReadMetric<Sources> extends Row {
  readonly type: "gauge" | "counter";
  /** As deep as there are labels. */
  readonly value: (sources: Sources) => Values | Promise<Values>;
}

/** A metric that every answered request adds to; its labels are taken of the request. */
export interface RequestMetric extends Row {
  readonly type: "counter" | "histogram";
  readonly labels: readonly RequestLabel[];
  /** Upper bounds of a histogram. */
  readonly buckets?: readonly number[];
  /** Undefined for a request that it does not count. */
  readonly perRequest: (request: SettledRequest) => number | undefined;
}

type RequestLabel = "protocol" | "rpc" | "code";

/** A row. */
export type Metric<Sources> = ReadMetric<Sources> | RequestMetric;

/** Values of this many labels. */
type ByLabel<L extends readonly string[]> = L extends readonly [string, ...infer Rest extends readonly string[]]
  ? Readonly<Record<string, ByLabel<Rest>>>
  : number;

/** Makes a row of a metric that is read. */
export type ReadRow<Sources> = <const L extends readonly string[]>(
  name: string,
  help: string,
  labels: L,
  value: (sources: Sources) => ByLabel<L> | Promise<ByLabel<L>>,
) => ReadMetric<Sources>;

/** Makes rows of a type, whose values do not compile unless they are as deep as there are labels. */
export function readRow<Sources>(type: ReadMetric<Sources>["type"]): ReadRow<Sources> {
  return (name, help, labels, value) => ({
    ...{ name, help, type, labels },
    value: value as ReadMetric<Sources>["value"],
  });
}
