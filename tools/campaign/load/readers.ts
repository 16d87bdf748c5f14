/** Readers: one for each node, that asks again and again for what is there, as long as the node answers. */
import { setTimeout as sleep } from "node:timers/promises";
import { createChance } from "../../../test/helpers/wire/hostile-values.js";
import type { Model } from "../model/model.js";
import type { CampaignNode } from "../nodes/node.js";
import type { CampaignClient } from "./client.js";

const everyMs = 60;
/** Of what is asked for most is new. */
const newest = 50;

/** Starts them; gives what stops them. */
export function startReaders(
  seed: number,
  { nodes, model, client }: { nodes: readonly CampaignNode[]; model: Model; client: CampaignClient },
): () => Promise<void> {
  let isStopped = false;

  async function read(node: CampaignNode): Promise<void> {
    const chance = createChance(seed * 1_000 + 900 + node.index);
    const among = <T>(all: readonly T[]): T | undefined =>
      chance.pick(chance.below(4) === 0 ? all : all.slice(-newest));
    const readOne = async (): Promise<void> => {
      const open = model.open();
      const sent = open.length > 0 && chance.below(2) === 0 ? among(open) : among(model.included);
      const address = among(model.addresses);
      if (sent !== undefined && chance.below(3) > 0) {
        await client.fate(node, sent.hash);
      } else if (address !== undefined) {
        await client.document(node, address);
      } else {
        await client.head(node);
      }
    };
    while (!isStopped) {
      // A node that is away, or says that it is in trouble, tells nothing that could be wrong.
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
