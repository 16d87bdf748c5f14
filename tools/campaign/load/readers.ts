/** Readers, one for each node, that request programs and transactions in a loop. */
import { setTimeout as sleep } from "node:timers/promises";
import { createChance } from "../../../test/helpers/wire/hostile-values.js";
import type { Model } from "../model/model.js";
import type { CampaignNode } from "../nodes/node.js";
import type { CampaignClient } from "./client.js";

const everyMs = 60;
/** Number of latest items from which most requests choose. */
const latestCount = 50;

/** Starts the readers. Returns the function that stops them. */
export function startReaders(
  seed: number,
  { nodes, model, client }: { nodes: readonly CampaignNode[]; model: Model; client: CampaignClient },
): () => Promise<void> {
  let isStopped = false;

  async function read(node: CampaignNode): Promise<void> {
    const chance = createChance(seed * 1_000 + 900 + node.index);
    const pickFrom = <T>(all: readonly T[]): T | undefined =>
      chance.pick(chance.below(4) === 0 ? all : all.slice(-latestCount));
    const readOne = async (): Promise<void> => {
      const open = model.open();
      const sent = open.length > 0 && chance.below(2) === 0 ? pickFrom(open) : pickFrom(model.included);
      const address = pickFrom(model.addresses);
      if (sent !== undefined && chance.below(3) > 0) {
        await client.transactionStatus(node, sent.hash);
      } else if (address !== undefined) {
        await client.document(node, address);
      } else {
        await client.head(node);
      }
    };
    while (!isStopped) {
      // Ignore errors: only a successful response can contradict the model.
      await readOne().catch(() => undefined);
      await sleep(everyMs);
    }
  }

  const reading = Promise.all(nodes.map(read));
  return async () => {
    isStopped = true;
    await reading;
  };
}
