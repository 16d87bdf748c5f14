/** When what was done to whom, and what /health said then. */
import { percentile } from "../bench/statistics.js";
import type { Probe } from "./load/prober.js";

/** A time of the campaign, in milliseconds since the epoch. */
export interface Phase {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Latencies in milliseconds. */
export interface Latencies {
  readonly ascendingMs: readonly number[];
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Of answers of /health that were asked for in these times, by these nodes: how long they took. */
export function latenciesIn(
  probes: readonly Probe[],
  phases: readonly Phase[],
  isCounted: (probe: Probe) => boolean,
): Latencies {
  return latenciesOf(
    probes
      .filter(
        (probe) => isCounted(probe) && phases.some(({ fromMs, toMs }) => probe.atMs >= fromMs && probe.atMs < toMs),
      )
      .map(({ latencyMs }) => Number(latencyMs.toFixed(1))),
  );
}

/** The usual two of them, NaN where there are none. */
export function latenciesOf(all: readonly number[]): Latencies {
  const ascendingMs = all.toSorted((a, b) => a - b);
  return { ascendingMs, p50Ms: percentile(ascendingMs, 0.5), p99Ms: percentile(ascendingMs, 0.99) };
}

/** What was said how often, the most frequent first. */
export function saidIn(probes: readonly Probe[], { fromMs, toMs }: Phase, node: number): string {
  const counts = new Map<string, number>();
  for (const { said } of probes.filter((probe) => probe.node === node && probe.atMs >= fromMs && probe.atMs < toMs)) {
    counts.set(said, (counts.get(said) ?? 0) + 1);
  }
  const sorted = [...counts].toSorted(([, a], [, b]) => b - a);
  return sorted.map(([said, count]) => `${said} × ${count}`).join(", ");
}
