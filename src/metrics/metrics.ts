/** Metrics in the text format of Prometheus: the rows of a table, and what the library knows of Node.js. */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Metric, ReadMetric, RequestMetric, Values } from "./row.js";
import type { SettledRequest } from "./settled-request.js";

/** The metrics. */
export interface Metrics {
  readonly contentType: string;
  /** Counts a request. */
  count(request: SettledRequest): void;
  /** The text, as it is now. */
  text(): Promise<string>;
}

/** Builds the metrics; their sources are taken each time that they are asked for. */
export function createMetrics<Sources>(
  table: readonly Metric<Sources>[],
  takeSources: () => Promise<Sources>,
): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const readers: ((sources: Sources) => Promise<void>)[] = [];
  const counters: ((request: SettledRequest) => void)[] = [];
  for (const row of table) {
    if ("perRequest" in row) {
      counters.push(registerPerRequest(row, registry));
    } else {
      readers.push(registerRead(row, registry));
    }
  }

  return {
    contentType: registry.contentType,
    count(request) {
      for (const count of counters) {
        count(request);
      }
    },
    async text() {
      const sources = await takeSources();
      await Promise.all(readers.map((read) => read(sources)));
      return await registry.metrics();
    },
  };
}

function registerPerRequest(row: RequestMetric, registry: Registry): (request: SettledRequest) => void {
  const { name, help, labels: labelNames, buckets = [], perRequest } = row;
  const common = { name, help, labelNames, registers: [registry] };
  const labelsOf = ({ protocol, rpc = "none", code }: SettledRequest): Record<string, string> => {
    const all = { protocol, rpc, code };
    return Object.fromEntries(labelNames.map((label) => [label, all[label]]));
  };
  if (row.type === "histogram") {
    const histogram = new Histogram({ ...common, buckets: [...buckets] });
    return (request) => histogram.observe(labelsOf(request), perRequest(request));
  }
  const counter = new Counter(common);
  return (request) => counter.inc(labelsOf(request), perRequest(request));
}

function registerRead<Sources>(row: ReadMetric<Sources>, registry: Registry): (sources: Sources) => Promise<void> {
  const { name, help, labels, value } = row;
  const common = { name, help, labelNames: labels, registers: [registry] };
  if (row.type === "gauge") {
    const gauge = new Gauge(common);
    return async (sources) => visit(await value(sources), labels, {}, (own, number) => gauge.set(own, number));
  }
  const counter = new Counter(common);
  return async (sources) => {
    const values = await value(sources);
    counter.reset();
    visit(values, labels, {}, (own, number) => counter.inc(own, number));
  };
}

/** Tells of every number, with its labels. */
function visit(
  values: Values,
  [label, ...others]: readonly string[],
  own: Readonly<Record<string, string>>,
  tell: (labels: Readonly<Record<string, string>>, value: number) => void,
): void {
  if (typeof values === "number") {
    tell(own, values);
    return;
  }
  for (const [labelValue, inner] of Object.entries(values)) {
    visit(inner, others, { ...own, [label!]: labelValue }, tell);
  }
}
