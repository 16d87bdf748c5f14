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
  /** Description for the help text. */
  readonly description: string;
  /** True if the fault never occurs together with another one. */
  readonly isAlone?: boolean;
  /** Indices of the nodes that may be targeted. Default: all. */
  readonly targets?: readonly number[];
  /** Returns the reason if the fault is not possible on this network. Default: it is possible everywhere. */
  unavailableReason?(network: CampaignNetwork): string | undefined;
  /** Draws all random parameters in advance, so that a seed repeats the same faults regardless of the nodes. */
  plan(chance: Chance, target: number): FaultPlan;
}

/** Drawn parameters of a fault. */
export interface FaultPlan {
  /** Description of the fault, for the log and the report. */
  readonly title: string;
  /** Injects the fault into the target node, waits for its duration, and removes it. */
  run(stage: Stage, node: CampaignNode): Promise<void>;
}

/** Fault with its target node. */
export interface PlannedFault extends Pick<FaultPlan, "title"> {
  readonly kind: FaultKind;
  /** Index of the target node. */
  readonly target: number;
  run(stage: Stage): Promise<void>;
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
