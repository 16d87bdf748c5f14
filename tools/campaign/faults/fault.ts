/** What a fault is. */
import { setTimeout as sleep } from "node:timers/promises";
import { errorMessage } from "../../../src/base/errors/error-message.js";
import type { Chance } from "../../../test/helpers/wire/hostile-values.js";
import type { CampaignClient } from "../load/client.js";
import type { Model } from "../model/model.js";
import type { CampaignNetwork } from "../nodes/network.js";
import type { CampaignNode } from "../nodes/node.js";
import type { FaultKind } from "../settings.js";

/** Where faults happen. */
export interface Stage {
  readonly network: CampaignNetwork;
  readonly model: Model;
  readonly client: CampaignClient;
}

/** A kind of fault. */
export interface Fault {
  readonly kind: FaultKind;
  /** What it does, for people. */
  readonly does: string;
  /** It is never made together with another one. */
  readonly isAlone?: boolean;
  /** Nodes that it may happen to; all when left out. */
  readonly targets?: readonly number[];
  /** Why it cannot be made here; undefined where it can. */
  whyNot(network: CampaignNetwork): string | undefined;
  /** Draws all that there is to be drawn, so that a seed gives the same faults whatever the nodes do. */
  plan(chance: Chance, target: number): PlannedFault;
}

/** A fault that will be made. */
export interface PlannedFault {
  readonly kind: FaultKind;
  /** The node that it happens to. */
  readonly target: number;
  /** What will be done, in words. */
  readonly title: string;
  /** Makes it, lasts as long as it does, and mends it. */
  run(stage: Stage): Promise<void>;
}

/** The node that a fault happens to. */
export function targetOf({ network }: Stage, target: number): CampaignNode {
  return network.nodes[target]!;
}

const startAttempts = 20;

/** Starts a node again, as whatever runs it does: again and again, while what it needs is away. */
export async function bringBack({ model }: Stage, node: CampaignNode): Promise<void> {
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

/** Seconds, as titles have them. */
export function inSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** A fault of any machine. */
export const possible = (): undefined => undefined;
