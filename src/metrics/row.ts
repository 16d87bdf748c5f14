/** Types of the rows in the metric table. */
import type { Outcome } from "../rpc/errors.js";

/** Finished request, as metrics and traces record it. */
export interface MeasuredRequest {
  readonly protocol: string;
  /** `package.Service/Method`; undefined if the request named no rpc. */
  readonly rpc: string | undefined;
  readonly code: Outcome;
  readonly latencyMs: number;
  readonly isStream: boolean;
}

/** Source that is available to every row: the number of values that could not be read or timed out. */
export interface ScrapeErrors {
  readonly scrapeErrors: number;
}

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

/** Creates a row factory for a type. Values compile only if they are nested as deep as there are labels. */
export function readRow<Sources>(type: ReadMetric<Sources>["type"]) {
  return <const L extends readonly string[]>(
    name: string,
    help: string,
    labels: L,
    value: (sources: Sources) => ByLabel<L> | Promise<ByLabel<L>>,
  ): ReadMetric<Sources> => ({ name, help, type, labels, value: value as ReadMetric<Sources>["value"] });
}
