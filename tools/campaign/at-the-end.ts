/** What is compared once, at the end: whole chains, and what stands in the databases. */
import { errorMessage } from "../../src/base/errors/error-message.js";
import { openDatabase } from "../../src/db/open.js";
import { readState } from "../../test/helpers/chain/state-digest.js";
import type { Stage } from "./faults/fault.js";

/** Reads every block of every node. */
export async function compareWholeChains({ network, model, client }: Stage): Promise<void> {
  for (const node of network.nodes) {
    const last = await client.blocks(node, 1).catch((error: unknown) => {
      model.find("served wrong", `The chain of ${node.name} cannot be read: ${errorMessage(error)}`);
    });
    if (last !== undefined && last !== model.height) {
      model.find("torn", `${node.name} gives blocks to ${last}; there are ${model.height}.`);
    }
  }
}

/** Most programs whose rows are compared. */
const mostPrograms = 200;

/** Compares what the nodes' databases hold, as the stores of a node read it; the nodes are stopped. */
export async function compareDatabases({ network, model }: Stage, senders: readonly string[]): Promise<void> {
  const { databases, nodes } = network;
  const elements = model.included.flatMap(({ change }) => (change.kind === "commit" ? [change.commitment] : []));
  const everything = {
    senders,
    addresses: new Set(model.addresses.slice(-mostPrograms)),
    elements: new Set(elements.slice(-mostPrograms)),
  };
  const states: string[][] = [];
  for (const { index, name } of nodes) {
    const database = await openDatabase(databases.urlOf(index));
    try {
      const lines = await readState(database, everything);
      // It is the newest id, and PostgreSQL leaves some out when its server is killed.
      states.push(lines.filter((line) => !line.startsWith("programs: ")));
      if (databases.engine === "sqlite") {
        const [found] = await database.read.rows<{ integrity_check: string }>((sql) =>
          sql.raw("PRAGMA integrity_check"),
        );
        if (found?.integrity_check !== "ok") {
          model.find("torn", `SQLite finds the database of ${name} damaged: ${found?.integrity_check ?? "no answer"}`);
        }
      }
    } finally {
      await database.close();
    }
  }
  const [first, ...others] = states;
  for (const [i, other] of others.entries()) {
    const unlike = first!.findIndex((line, at) => line !== other[at]);
    if (unlike !== -1 || first!.length !== other.length) {
      const [one, two] = [first![unlike], other[unlike]].map((line) => line?.slice(0, 300) ?? "nothing");
      model.find("torn", `The databases of ${nodes[0]!.name} and ${nodes[i + 1]!.name} differ: ${one}; ${two}`);
    }
  }
}
