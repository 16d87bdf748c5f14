/** Result of an attack, as text and as figures. */
import { formatFigure } from "../print.js";
import type { MemoryPeaks } from "../servers/process-tree.js";
import type { AttackCounts } from "./attack.js";
import { type Inclusion, type PhaseReport, serviceNames } from "./judge.js";
import {
  answeredShare,
  bystanders,
  inMib,
  inMs,
  limits,
  type NodeState,
  neighbor,
  orchestrator,
  p99LimitMs,
  percent,
  quantiles,
} from "./verdict.js";

/** Figures of a node before or after an attack. */
export interface NodeFigures {
  readonly rssBytes: number;
  readonly uncaught: number;
  readonly activeRequests: number;
  readonly workerRestarts: number;
}

/** Result of one attack. */
export interface AttackResult {
  readonly idle: PhaseReport;
  /** The idle node while the flood met the control, if it was measured. */
  readonly control: PhaseReport | undefined;
  readonly attack: PhaseReport;
  /** Undefined if the node has ended. */
  readonly inclusion: Inclusion | undefined;
  /** Undefined if the attacker did not report. */
  readonly counts: AttackCounts | undefined;
  readonly before: NodeFigures;
  readonly after: NodeFigures;
  readonly peaks: MemoryPeaks;
  readonly state: NodeState;
  /** Exit code or signal of the node; undefined while it runs. */
  readonly ended: number | string | undefined;
  readonly logLines: number;
  readonly violations: readonly string[];
}

const mib = 1024 ** 2;
const columns = { name: 14, figure: 10 };

/** Returns the lines of the output. */
export function describeResult(result: AttackResult): string[] {
  const { idle, control, attack, inclusion, counts, peaks, state, ended, after } = result;
  const cells = (name: string, figures: readonly string[]): string =>
    name.padEnd(columns.name) + figures.map((figure) => figure.padStart(columns.figure)).join("");
  const hasControl = control !== undefined;
  const head = ["idle p50", "p99", ...(hasControl ? ["ctl p50", "p99"] : []), "att. p50", "p99", "limit", "answered"];
  const rows = bystanders.map((name) => {
    const phases = [idle, ...(hasControl ? [control] : []), attack];
    const latencies = phases.flatMap(({ services }) => {
      const { p50, p99 } = quantiles(services[name]);
      return [inMs(p50), inMs(p99)];
    });
    const limit = inMs(p99LimitMs(idle.services[name]));
    const missing = Object.entries(attack.services[name].others).map(([status, count]) => `${status}: ${count}`);
    const row = cells(name, [...latencies, limit, percent(answeredShare(attack.services[name]))]);
    return missing.length === 0 ? row : `${row}  (${missing.join(", ")})`;
  });
  const { [orchestrator]: probes, [neighbor]: honest } = attack.services;
  const life = ended === undefined ? "lives" : `ended with ${ended}`;
  return [
    cells("ms", head),
    ...rows,
    `on the attacker's address: ${probes.latencies.length} of ${probes.sent} probes 200 (${probes.limited} told 429), ` +
      `honest requests: ${honest.latencies.length} of ${honest.sent} 200, ${honest.limited} told 429`,
    `node ${life}${after.workerRestarts > 0 ? `, ${after.workerRestarts} workers restarted` : ""}; private memory ` +
      `${state.peakBytes === undefined ? "unknown" : inMib(state.peakBytes)} of ${inMib(state.limitBytes)} MiB, ` +
      `resident ${peaks.rssBytes === undefined ? "unknown" : inMib(peaks.rssBytes)} MiB`,
    inclusion === undefined
      ? "honest transactions: unknown"
      : `honest transactions: ${inclusion.blocks.length} in blocks, ${inclusion.lost} lost`,
    counts === undefined
      ? "attacker: no report"
      : `attacker: ${Object.entries(counts)
          .map(([name, count]) => `${name} ${formatFigure(count)}`)
          .join(", ")}`,
    `the judge's own lag: p99 ${inMs(attack.lagMs)} ms (idle ${inMs(idle.lagMs)})`,
    ...(bystanders.some((name) => limits.timesIdle * quantiles(idle.services[name]).p99 > limits.p99Ms)
      ? ["busy machine: the idle node was slow already, so compare with --control, or repeat the run"]
      : []),
  ];
}

/** Returns all figures by name. */
export function figuresOfResult(result: AttackResult): Record<string, number> {
  const { idle, control, attack, inclusion, counts, before, after, peaks, state, logLines } = result;
  const phases = { idle, attack, ...(control !== undefined && { control }) };
  const services = Object.entries(phases).flatMap(([phase, { services: measured, lagMs }]) => [
    ...serviceNames.flatMap((name): [string, number][] => {
      const { p50, p99 } = quantiles(measured[name]);
      return [
        [`${phase} ${name} p50 ms`, p50],
        [`${phase} ${name} p99 ms`, p99],
        [`${phase} ${name} sent`, measured[name].sent],
        [`${phase} ${name} answered`, measured[name].latencies.length],
        [`${phase} ${name} told 429`, measured[name].limited],
        ...Object.entries(measured[name].others).map(([status, count]): [string, number] => [
          `${phase} ${name} ${status}`,
          count,
        ]),
      ];
    }),
    [`${phase} judge lag p99 ms`, lagMs] as [string, number],
  ]);
  return {
    ...Object.fromEntries(services),
    "memory before MiB": before.rssBytes / mib,
    ...(peaks.rssBytes !== undefined && { "peak MiB": peaks.rssBytes / mib }),
    ...(state.peakBytes !== undefined && { "private peak MiB": state.peakBytes / mib }),
    "memory limit MiB": state.limitBytes / mib,
    "after MiB": after.rssBytes / mib,
    ...(peaks.socketBytes !== undefined && { "sockets' peak MiB": peaks.socketBytes / mib }),
    "log lines": logLines,
    "uncaught before": before.uncaught,
    "uncaught after": after.uncaught,
    "requests held after": after.activeRequests,
    "worker restarts": after.workerRestarts,
    ...(inclusion !== undefined && {
      "honest transactions in blocks": inclusion.blocks.length,
      "in a block after, p50": inclusion.blocks[Math.floor(inclusion.blocks.length / 2)] ?? NaN,
      "in a block after, max": inclusion.blocks.at(-1) ?? NaN,
      "honest lost": inclusion.lost,
    }),
    ...counts,
  };
}
