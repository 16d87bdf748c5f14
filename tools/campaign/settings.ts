/** What a campaign is told. */

/** Kinds of faults, in the order of the help text. */
export const faultKinds = [
  ...(["kill", "stop", "pause", "join", "cut", "loss", "clock"] as const),
  ...(["disk", "corrupt", "power", "server", "switchover"] as const),
] as const;

export type FaultKind = (typeof faultKinds)[number];

/** Database engine of the nodes. */
export type CampaignEngine = "sqlite" | "postgresql";

/** What a campaign is told. */
export interface CampaignSettings {
  /** Time in minutes after which no fault starts. */
  readonly minutes: number;
  /** Seed of the random faults and operations. */
  readonly seed: number;
  readonly engine: CampaignEngine;
  readonly kinds: readonly FaultKind[];
  /** Transactions per second of all senders together, while nodes accept them. */
  readonly rate: number;
  /** Limit in milliseconds on the time until the network is at rest after a fault. */
  readonly restMs: number;
  /** Limit on the rounds, in addition to the time. Default: no limit. */
  readonly rounds?: number;
  /** True if the campaign injects each kind once, one after the other, and then ends. */
  readonly isShort?: boolean;
  /** Empty directory for the data of the nodes. */
  readonly directory: string;
  readonly log: (text: string) => void;
}
