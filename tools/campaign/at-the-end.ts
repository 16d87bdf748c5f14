/** Final comparison of a campaign: the full chains of all nodes, and the contents of their databases. */
import { errorMessage } from "../../src/base/errors/error-message.js";
import { openDatabase } from "../../src/db/open.js";
import { readState } from "../../test/helpers/chain/state-digest.js";
import type { Stage } from "./faults/fault.js";

/** Reads every block of every node. Reports nodes whose chain differs from the expected one. */
export async function compareChains({ network, model, client }: Stage): Promise<void> {
  for (const node of network.nodes) {
    const last = await client.blocks(node, 1).catch((error: unknown) => {
      model.find("served wrong", `The chain of ${node.name} cannot be read: ${errorMessage(error)}`);
    });
    if (last !== undefined && last !== model.height) {
      model.find("torn", `${node.name} gives blocks to ${last}; there are ${model.height}.`);
    }
  }
}

/** Limit on the programs and commitments whose rows are compared. */
const maxPrograms = 200;

/** Compares the contents of the databases, read through the stores of a node. All nodes must be stopped. */
export async function compareDatabases({ network, model }: Stage, senders: readonly string[]): Promise<void> {
  const { databases, nodes } = network;
  const elements = model.included.flatMap(({ change }) => (change.kind === "commit" ? [change.commitment] : []));
  const requested = {
    senders,
    addresses: new Set(model.addresses.slice(-maxPrograms)),
    elements: new Set(elements.slice(-maxPrograms)),
  };
  const states: string[][] = [];
  for (const { index, name } of nodes) {
    const database = await openDatabase(databases.urlOf(index));
    try {
      const lines = await readState(database, requested);
      // Skip the latest program id: PostgreSQL skips ids after its server was killed.
      states.push(lines.filter((line) => !line.startsWith("programs: ")));
      if (databases.engine === "sqlite") {
        const [result] = await database.read.rows<{ integrity_check: string }>((sql) =>
          sql.raw("PRAGMA integrity_check"),
        );
        if (result?.integrity_check !== "ok") {
          model.find("torn", `SQLite finds the database of ${name} damaged: ${result?.integrity_check ?? "no answer"}`);
        }
      }
    } finally {
      await database.close();
    }
  }
  const [first, ...others] = states;
  for (const [i, lines] of others.entries()) {
    const difference = first!.findIndex((line, at) => line !== lines[at]);
    if (difference !== -1 || first!.length !== lines.length) {
      const [leftLine, rightLine] = [first![difference], lines[difference]].map(
        (line) => line?.slice(0, 300) ?? "nothing",
      );
      model.find(
        "torn",
        `The databases of ${nodes[0]!.name} and ${nodes[i + 1]!.name} differ: ${leftLine}; ${rightLine}`,
      );
    }
  }
}
