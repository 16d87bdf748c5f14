/** `gatehouse verify-data`: verifies all stored data without a node. */
import type { Command } from "commander";
import { addNodeFiles } from "../usage/node-flags.js";
import type { VerifyDataFlags } from "./stored-data.js";

export function addVerifyData(command: Command): void {
  addNodeFiles(command)
    .option("--json", "Print JSON.")
    .addHelpText(
      "after",
      `
Reads the database without changing it, whether the node runs or not. Verifies:

  - every block: its link to the previous block, the authority's signature, the senders' signatures, and its results
  - the commitment tree, up to the roots in the headers
  - every program, nullifier and nonce, against its checksum and the state root of the latest header

Prints each error on a line of its own. To repair a database, restore a backup, or move the database away and let the node
fetch the chain again from its peers.

Exit codes: 0 no errors, 1 errors found, 2 there is no database to verify.

Examples:
  gatehouse verify-data --data-dir /var/lib/gatehouse
  gatehouse verify-data --database postgres://gatehouse:secret@db/gatehouse --json`,
    )
    .action(async (flags: VerifyDataFlags) => {
      const { verifyData } = await import("./stored-data.js");
      await verifyData(flags);
    });
}
