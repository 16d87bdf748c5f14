/** Result of a campaign. */
import type { Finding } from "./model/history.js";
import type { Model } from "./model/model.js";
import type { Latencies, Phase } from "./phases.js";
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
