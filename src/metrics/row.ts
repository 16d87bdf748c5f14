/** Types of the rows in the metric table. */
import type { MeasuredRequest } from "./measured-request.js";

/** Value of a metric: a number, or a record by values of the first label, nested once more for each further label. */
export type Values = number | { readonly [labelValue: string]: Values };

interface Row {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
}

/** Metric that is read at each scrape. The total of a counter lives outside of the metrics. */
export interface ReadMetric<Sources> extends Row {
  readonly type: "gauge" | "counter";
  /** Reads the value, nested as deep as there are labels. */
  readonly value: (sources: Sources) => Values | Promise<Values>;
}

/** Metric that every finished request adds to. The request supplies the labels. */
export interface RequestMetric extends Row {
  readonly type: "counter" | "histogram";
  readonly labels: readonly RequestLabel[];
  /** Upper bounds of the buckets of a histogram. */
  readonly buckets?: readonly number[];
  /** Returns the amount to add; undefined for a request that does not count. */
  readonly perRequest: (request: MeasuredRequest) => number | undefined;
}

type RequestLabel = "protocol" | "rpc" | "code";

export type Metric<Sources> = ReadMetric<Sources> | RequestMetric;

/** Value nested as deep as there are labels in `L`. */
type ByLabel<L extends readonly string[]> = L extends readonly [string, ...infer Rest extends readonly string[]]
  ? Readonly<Record<string, ByLabel<Rest>>>
  : number;

/** Creates a row of a metric that is read at each scrape. */
export type ReadRow<Sources> = <const L extends readonly string[]>(
  name: string,
  help: string,
  labels: L,
  value: (sources: Sources) => ByLabel<L> | Promise<ByLabel<L>>,
) => ReadMetric<Sources>;

/** Creates a row factory for a type. Values compile only if they are nested as deep as there are labels. */
export function readRow<Sources>(type: ReadMetric<Sources>["type"]): ReadRow<Sources> {
  return (name, help, labels, value) => ({
    ...{ name, help, type, labels },
    value: value as ReadMetric<Sources>["value"],
  });
}
