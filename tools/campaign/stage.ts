/** Sets up what a campaign needs: databases, nodes that are not started yet, and the model that hears of all. */
import { join } from "node:path";
import type { Teardown } from "../../test/helpers/nodes/teardown.js";
import { watchDisks } from "./disk/disk.js";
import { faults } from "./faults/all.js";
import type { Stage } from "./faults/fault.js";
import { createClient } from "./load/client.js";
import { createModel, type Model } from "./model/model.js";
import { type Databases, postgresDatabases, sqliteDatabases } from "./nodes/databases.js";
import { homeOf, nodeNames, prepareNetwork } from "./nodes/network.js";
import type { CampaignSettings, FaultKind } from "./settings.js";

/** Builds it. @throws Error where PostgreSQL does not start */
export async function setStage(t: Teardown, { directory, engine }: CampaignSettings): Promise<Stage> {
  const databases = await openDatabases(t, directory, engine);
  const disk = watchDisks(directory, engine === "sqlite");
  const told: { model?: Model } = {};
  const network = await prepareNetwork(t, {
    ...{ directory, databases, disk },
    onEnd(node, code, lastWords) {
      if (!node.mayEnd) {
        told.model?.find("crashed", `${node.name} ended by itself with ${code ?? "a signal"}: ${lastWords.trim()}`);
      }
    },
  });
  const model = createModel((node) => network.nodes[node]!.name, network.genesisHash);
  told.model = model;
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

/** Which of these kinds of faults can be made here, and why the others cannot. */
export function chooseKinds(kinds: readonly FaultKind[], { network }: Stage) {
  const skipped: Partial<Record<FaultKind, string>> = {};
  const possible = kinds.filter((kind) => {
    const why = faults[kind].whyNot(network);
    if (why !== undefined) {
      skipped[kind] = why;
    }
    return why === undefined;
  });
  return { possible, skipped };
}
