/** Prepares a campaign: databases, nodes (not started yet), and the model that checks them. */
import { join } from "node:path";
import type { Teardown } from "../../test/helpers/nodes/teardown.js";
import { interceptDisks } from "./disk/disk.js";
import { faults } from "./faults/all.js";
import type { Stage } from "./faults/fault.js";
import { createClient } from "./load/client.js";
import { createModel, type Model } from "./model/model.js";
import { type Databases, postgresDatabases, sqliteDatabases } from "./nodes/databases.js";
import { homeOf, nodeNames, prepareNetwork } from "./nodes/network.js";
import type { CampaignSettings, FaultKind } from "./settings.js";

/** Creates the stage. Throws an Error if PostgreSQL does not start. */
export async function createStage(t: Teardown, { directory, engine }: CampaignSettings): Promise<Stage> {
  const databases = await openDatabases(t, directory, engine);
  const disk = interceptDisks(directory, engine === "sqlite");
  const holder: { model?: Model } = {};
  const network = await prepareNetwork(t, {
    ...{ directory, databases, disk },
    onEnd(node, reason, stderrTail) {
      if (!node.mayEnd) {
        holder.model?.find("crashed", `${node.name} ended by itself with ${reason}: ${stderrTail.trim()}`);
      }
    },
  });
  const model = createModel((node) => network.nodes[node]!.name, network.genesisHash);
  holder.model = model;
  return { network, model, client: createClient(model, network.genesisHash) };
}

async function openDatabases(t: Teardown, directory: string, engine: CampaignSettings["engine"]): Promise<Databases> {
  if (engine === "sqlite") {
    return sqliteDatabases(nodeNames.map((name) => join(homeOf(directory, name))));
  }
  const databases = await postgresDatabases(t, nodeNames.length);
  if (typeof databases === "string") {
    throw new Error(`PostgreSQL does not start: ${databases}`);
  }
  return databases;
}

/** Splits kinds of faults into the possible ones, and the others with the reason. */
export function chooseKinds(kinds: readonly FaultKind[], { network }: Stage) {
  const skipped: Partial<Record<FaultKind, string>> = {};
  const possible = kinds.filter((kind) => {
    const reason = faults[kind].unavailableReason?.(network);
    if (reason !== undefined) {
      skipped[kind] = reason;
    }
    return reason === undefined;
  });
  return { possible, skipped };
}
