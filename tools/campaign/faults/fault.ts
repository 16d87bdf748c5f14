/** Definition of faults. */
import { setTimeout as sleep } from "node:timers/promises";
import { errorMessage } from "../../../src/base/errors/error-message.js";
import type { Chance } from "../../../test/helpers/wire/hostile-values.js";
import type { CampaignClient } from "../load/client.js";
import type { Model } from "../model/model.js";
import type { CampaignNetwork } from "../nodes/network.js";
import type { CampaignNode } from "../nodes/node.js";
import type { FaultKind } from "../settings.js";

/** Network, model and client of a campaign, which faults act on. */
export interface Stage {
  readonly network: CampaignNetwork;
  readonly model: Model;
  readonly client: CampaignClient;
}

/** Kind of fault. */
export interface Fault {
  readonly kind: FaultKind;
  /** Description for the help text. */
  readonly description: string;
  /** True if the fault never occurs together with another one. */
  readonly isAlone?: boolean;
  /** Indices of the nodes that may be targeted. Default: all. */
  readonly targets?: readonly number[];
  /** Returns the reason if the fault is not possible on this network. */
  unavailableReason(network: CampaignNetwork): string | undefined;
  /** Draws all random parameters in advance, so that a seed repeats the same faults regardless of the nodes. */
  plan(chance: Chance, target: number): PlannedFault;
}

/** Fault with its drawn parameters. */
export interface PlannedFault {
  readonly kind: FaultKind;
  /** Index of the target node. */
  readonly target: number;
  /** Description of the fault, for the log and the report. */
  readonly title: string;
  /** Injects the fault, waits for its duration, and removes it. */
  run(stage: Stage): Promise<void>;
}

/** Returns the target node of a fault. */
export function targetOf({ network }: Stage, target: number): CampaignNode {
  return network.nodes[target]!;
}

const startAttempts = 20;

/** Starts a node, as a service manager would: retries up to 20 times while a resource is unavailable. */
export async function restartNode({ model }: Stage, node: CampaignNode): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await node.start();
      return;
    } catch (error) {
      if (attempt === startAttempts) {
        model.find("crashed", `${node.name} does not start again: ${errorMessage(error)}`);
        return;
      }
      await sleep(500);
    }
  }
}

/** Formats a duration for titles. */
export function inSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** Returns no reason, for faults that are possible everywhere. */
export const possible = (): undefined => undefined;
