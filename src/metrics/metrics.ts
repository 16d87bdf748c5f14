/**
 * Metrics in the Prometheus text format: the rows of the metric table, and the default Node.js metrics of prom-client.
 */
import {
  AggregatorRegistry,
  collectDefaultMetrics,
  Counter,
  Gauge,
  Histogram,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from "prom-client";
import type { MeasuredRequest, Metric, ReadMetric, RequestMetric, ScrapeErrors, Values } from "./row.js";

export type Metrics = ReturnType<typeof createMetrics>;

export type RequestCounts = readonly MetricObjectWithValues<MetricValue<string>>[];

export type RequestCounter = ReturnType<typeof createRequestCounter>;

/** Time limit for reading one metric, so that a scrape never hangs. */
const readWithinMs = 1_000;

/**
 * Gauges of prom-client with names of counters, which `promtool check metrics` rejects. They are sums over the types of
 * `nodejs_active_handles`, `nodejs_active_requests` and `nodejs_active_resources`.
 */
const misnamed = ["handles", "requests", "resources"].map((kind) => `nodejs_active_${kind}_total`);

/**
 * Creates the metrics. Each scrape fetches the sources again. A value that cannot be read stays as it was, and is
 * omitted if it was never read; the other values are returned regardless.
 *
 * @param onReadError Called with the reason if a value could not be read.
 * @param otherCounts Returns the request counts of the node's other processes.
 */
export function createMetrics<Sources>(
  table: readonly Metric<Sources & ScrapeErrors>[],
  collectSources: () => Promise<Sources>,
  onReadError: (name: string, error: unknown) => void,
  otherCounts: () => Promise<readonly RequestCounts[]> = () => Promise.resolve([]),
) {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  misnamed.forEach((name) => registry.removeSingleMetric(name));
  const readers: ((sources: Sources & ScrapeErrors) => Promise<void>)[] = [];
  let errorCount = 0;
  const requests = createRequestCounter(table);
  for (const row of table) {
    if (!("perRequest" in row)) {
      const read = withTimeout(registerRead(row, registry));
      readers.push((sources) =>
        read(sources).catch((error: unknown) => {
          errorCount++;
          onReadError(row.name, error);
        }),
      );
    }
  }

  return {
    contentType: registry.contentType,
    count: requests.count,
    /** Reads all values and returns the page. */
    async text(): Promise<string> {
      const sources = { ...(await collectSources()), scrapeErrors: errorCount };
      await Promise.all(readers.map((read) => read(sources)));
      const counts = [await requests.counts(), ...(await otherCounts())];
      // `aggregate` declares mutable lists.
      const counted = AggregatorRegistry.aggregate(counts as MetricObjectWithValues<MetricValue<string>>[][]);
      return `${await counted.metrics()}\n${await registry.metrics()}`;
    },
  };
}

/** Creates a counter of requests, for the rows with `perRequest`. */
export function createRequestCounter(table: readonly Metric<never>[]) {
  const registry = new Registry();
  const counters = table.flatMap((row) => ("perRequest" in row ? registerPerRequest(row, registry) : []));
  return {
    count: (request: MeasuredRequest) => counters.forEach((count) => count(request)),
    counts: (): Promise<RequestCounts> => registry.getMetricsAsJSON(),
  };
}

/** Limits the wait for a read to `readWithinMs`. A read that is still in progress is shared, not started again. */
function withTimeout<Sources>(read: (sources: Sources) => Promise<void>): (sources: Sources) => Promise<void> {
  let inFlight: Promise<void> | undefined;
  return async (sources) => {
    inFlight ??= read(sources).finally(() => (inFlight = undefined));
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no response within ${readWithinMs} ms`)), readWithinMs);
    });
    try {
      await Promise.race([inFlight, timeout]);
    } finally {
      clearTimeout(timer);
    }
  };
}

function registerPerRequest(row: RequestMetric, registry: Registry): (request: MeasuredRequest) => void {
  const { name, help, labels: labelNames, buckets = [], perRequest } = row;
  const options = { name, help, labelNames, registers: [registry] };
  const labelsOf = ({ protocol, rpc = "none", code }: MeasuredRequest): Record<string, string> => {
    const all = { protocol, rpc, code };
    return Object.fromEntries(labelNames.map((label) => [label, all[label]]));
  };
  if (row.type === "histogram") {
    const histogram = new Histogram({ ...options, buckets: [...buckets] });
    return (request) => record(request, (labels, value) => histogram.observe(labels, value));
  }
  const counter = new Counter(options);
  return (request) => record(request, (labels, value) => counter.inc(labels, value));

  function record(request: MeasuredRequest, add: (labels: Record<string, string>, value: number) => void): void {
    const value = perRequest(request);
    if (value !== undefined) {
      add(labelsOf(request), value);
    }
  }
}

function registerRead<Sources>(row: ReadMetric<Sources>, registry: Registry): (sources: Sources) => Promise<void> {
  const { name, help, type, labels, value } = row;
  const options = { name, help, labelNames: labels, registers: [registry] };
  const metric = type === "gauge" ? new Gauge(options) : new Counter(options);
  if (labels.length === 0) {
    // prom-client sets such metrics to 0, a value that was never read.
    metric.remove();
  }
  return async (sources) => {
    const values = await value(sources);
    if (metric instanceof Counter) {
      metric.reset();
    }
    visit(values, labels, {}, (labelValues, number) =>
      metric instanceof Gauge ? metric.set(labelValues, number) : metric.inc(labelValues, number),
    );
  };
}

/** Calls `record` with each number and its labels. */
function visit(
  values: Values,
  [label, ...others]: readonly string[],
  labelValues: Readonly<Record<string, string>>,
  record: (labels: Readonly<Record<string, string>>, value: number) => void,
): void {
  if (typeof values === "number") {
    record(labelValues, values);
    return;
  }
  for (const [labelValue, inner] of Object.entries(values)) {
    visit(inner, others, { ...labelValues, [label!]: labelValue }, record);
  }
}
