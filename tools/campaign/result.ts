/** What came of a campaign. */
import type { Finding } from "./model/history.js";
import type { Model } from "./model/model.js";
import type { Latencies, Phase } from "./phases.js";
import type { CampaignEngine, FaultKind } from "./settings.js";

/** What was done in a round, and what came of it. */
export interface Round extends Phase {
  /** From 1. */
  readonly number: number;
  readonly faults: readonly { readonly kind: FaultKind; readonly node: string; readonly title: string }[];
  /** From the end of the faults until the network was at rest. */
  readonly restMs: number;
  /** What the nodes to which it happened said at /health meanwhile. */
  readonly said: Readonly<Record<string, string>>;
  /** /health of the other nodes meanwhile. */
  readonly others: Latencies;
}

/** What came of a campaign. */
export interface CampaignResult {
  readonly seed: number;
  readonly engine: CampaignEngine;
  readonly minutes: number;
  readonly seconds: number;
  readonly rounds: readonly Round[];
  readonly findings: readonly Finding[];
  /** Kinds that were asked for and cannot be made here, and why. */
  readonly skipped: Readonly<Partial<Record<FaultKind, string>>>;
  readonly counts: Model["counts"] & { readonly blocks: number };
  /** /health of all nodes outside of faults. */
  readonly calm: Latencies;
  /** Why it ended before its time. */
  readonly endedEarly?: string;
}
