/** What a campaign is told. */

/** What can be done to a network, in the order in which it is shown. */
export const faultKinds = [
  ...(["kill", "stop", "pause", "join", "cut", "loss", "clock"] as const),
  ...(["disk", "corrupt", "power", "server", "switchover"] as const),
] as const;

/** One of them. */
export type FaultKind = (typeof faultKinds)[number];

/** Whose database the nodes have. */
export type CampaignEngine = "sqlite" | "postgresql";

/** What a campaign is told. */
export interface CampaignSettings {
  /** No fault begins after that. */
  readonly minutes: number;
  /** What faults and load follow from. */
  readonly seed: number;
  readonly engine: CampaignEngine;
  readonly kinds: readonly FaultKind[];
  /** Transactions a second of all senders together, while there is room. */
  readonly rate: number;
  /** How long a network may take to come to rest after a fault. */
  readonly restMs: number;
  /** Most rounds, whatever the time; no limit when left out. */
  readonly rounds?: number;
  /** Whether each kind comes once, one at a time, in its order, and the campaign ends then. */
  readonly isShort?: boolean;
  /** An empty directory. */
  readonly directory: string;
  readonly say: (what: string) => void;
}
