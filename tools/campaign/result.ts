/** Result of a campaign: its periods, the responses of /health in them, and findings. */
import type { Finding } from "./model/history.js";
import type { Model } from "./model/model.js";
import { percentile } from "../bench/statistics.js";
import type { Probe } from "./load/prober.js";
import type { CampaignEngine, FaultKind } from "./settings.js";

/** Faults of a round, and their effects. */
export interface Round extends Phase {
  /** Number of the round, from 1. */
  readonly number: number;
  readonly faults: readonly { readonly kind: FaultKind; readonly node: string; readonly title: string }[];
  /** Time in milliseconds from the end of the faults until the network was at rest. */
  readonly restMs: number;
  /** Results of /health during the faults, by name of the target node. */
  readonly said: Readonly<Record<string, string>>;
  /** Latencies of /health on the other nodes during the faults. */
  readonly others: Latencies;
}

/** Result of a campaign. */
export interface CampaignResult {
  readonly seed: number;
  readonly engine: CampaignEngine;
  readonly minutes: number;
  readonly seconds: number;
  readonly rounds: readonly Round[];
  readonly findings: readonly Finding[];
  /** Requested kinds that are not possible here, with the reasons. */
  readonly skipped: Readonly<Partial<Record<FaultKind, string>>>;
  readonly counts: Model["counts"] & { readonly blocks: number };
  /** Latencies of /health on all nodes, outside of faults. */
  readonly calm: Latencies;
  /** Reason if the campaign ended early. */
  readonly endedEarly?: string;
}

/** Period of the campaign, in milliseconds since the epoch. */
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

/** Returns the latencies of the counted probes in these periods. */
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

/** Sorts latencies and computes p50 and p99; both are NaN without latencies. */
export function latenciesOf(latencies: readonly number[]): Latencies {
  const ascendingMs = latencies.toSorted((a, b) => a - b);
  return { ascendingMs, p50Ms: percentile(ascendingMs, 0.5), p99Ms: percentile(ascendingMs, 0.99) };
}

/** Counts the results of a node's probes in a period. Formats them as text, the most frequent first. */
export function countResults(probes: readonly Probe[], { fromMs, toMs }: Phase, node: number): string {
  const counts = new Map<string, number>();
  for (const { result } of probes.filter((probe) => probe.node === node && probe.atMs >= fromMs && probe.atMs < toMs)) {
    counts.set(result, (counts.get(result) ?? 0) + 1);
  }
  const sorted = [...counts].toSorted(([, a], [, b]) => b - a);
  return sorted.map(([result, count]) => `${result} × ${count}`).join(", ");
}
