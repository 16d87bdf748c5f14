/** Compares what other clients measured during an attack with what they measured on the idle node. */
import { percentile } from "../statistics.js";

/** Measured requests of one service. */
export interface Measured {
  /** Latencies of responses with status 200 in milliseconds, ascending. */
  readonly latencies: readonly number[];
  /** Number of requests sent. */
  readonly sent: number;
  /** Number of responses with status 429 and a Retry-After header. */
  readonly limited: number;
  /** Number of requests by another status than 200, or without a response. */
  readonly others: Readonly<Record<string, number>>;
}

/** Measurements of one phase, by the name of a service. */
export type Phase<Name extends string = string> = Readonly<Record<Name, Measured>>;

/** Observations of the node during an attack. */
export interface NodeState {
  /** True if no process of the node has ended. */
  readonly isAlive: boolean;
  /** Highest private memory of all its processes in bytes; undefined if it could not be read. */
  readonly peakBytes: number | undefined;
  readonly limitBytes: number;
}

/** Limits that a verdict checks. */
export const limits = {
  /** Smallest share of answered requests. */
  answeredShare: 0.99,
  /** Largest p99 as a multiple of the idle p99, and in milliseconds. The smaller one applies. */
  timesIdle: 10,
  p99Ms: 250,
} as const;

/** Services for clients on other addresses. */
export const bystanders = ["/livez", "/health", "storage read", "submission"] as const;
/** Orchestrator on the attacker's address: every probe must be answered with 200. */
export const orchestrator = "orchestrator";
/** Honest client on the attacker's address: may be told to wait, but not be cut off. */
export const neighbor = "neighbor";

export type ServiceName = (typeof bystanders)[number] | typeof orchestrator | typeof neighbor;

/** Returns p50 and p99 in milliseconds; NaN without a response. */
export function quantiles({ latencies }: Measured): { readonly p50: number; readonly p99: number } {
  return { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) };
}

/** Returns the share of requests with status 200, from 0 to 1. */
export function answeredShare({ latencies, sent }: Measured): number {
  return sent === 0 ? NaN : latencies.length / sent;
}

/** Returns the largest allowed p99 under attack, in milliseconds. */
export function p99LimitMs(idle: Measured): number {
  return Math.min(limits.timesIdle * quantiles(idle).p99, limits.p99Ms);
}

/** Returns a sentence for each violated limit. */
export function findViolations(idle: Phase<ServiceName>, attack: Phase<ServiceName>, node: NodeState): string[] {
  return [
    ...bystanders.flatMap((name) => serviceViolations(name, idle[name], attack[name])),
    ...orchestratorViolations(attack[orchestrator]),
    ...neighborViolations(attack[neighbor]),
    ...(node.isAlive ? [] : ["a process of the node ended"]),
    ...(node.peakBytes === undefined || node.peakBytes <= node.limitBytes
      ? []
      : [`memory ${inMib(node.peakBytes)} MiB, above ${inMib(node.limitBytes)}`]),
  ];
}

/** A share is not compared with NaN, so that a service without requests is a violation. */
const isEnough = (share: number): boolean => share >= limits.answeredShare;

function serviceViolations(name: string, idle: Measured, attack: Measured): string[] {
  const [share, limitMs] = [answeredShare(attack), p99LimitMs(idle)];
  const { p99 } = quantiles(attack);
  return [
    ...(isEnough(share) ? [] : [`${name}: ${percent(share)} answered, below ${percent(limits.answeredShare)}`]),
    // Without any response the share says it all.
    ...(attack.latencies.length === 0 || p99 <= limitMs
      ? []
      : [`${name}: p99 ${inMs(p99)} ms, above ${inMs(limitMs)}`]),
  ];
}

function orchestratorViolations({ latencies, sent, limited }: Measured): string[] {
  const missed = sent - latencies.length;
  return missed === 0 && sent > 0
    ? []
    : [`${orchestrator} on the attacker's address: ${missed} of ${sent} probes without 200, ${limited} of these 429`];
}

function neighborViolations({ latencies, sent, limited }: Measured): string[] {
  const told = latencies.length + limited;
  return isEnough(told / sent)
    ? []
    : [`honest client on the attacker's address: ${sent - told} of ${sent} requests without 200 or 429`];
}

/** Formats a share from 0 to 1. Rounds down, so that 99.9 % is not shown as 100. */
export function percent(share: number): string {
  return Number.isNaN(share) ? "–" : `${Math.floor(share * 1000) / 10} %`;
}

/** Formats milliseconds with at least two significant digits. */
export function inMs(ms: number): string {
  return Number.isNaN(ms) ? "–" : ms >= 10 ? Math.round(ms).toLocaleString("en") : ms.toFixed(1);
}

export function inMib(bytes: number): string {
  return Math.round(bytes / 1024 ** 2).toLocaleString("en");
}
