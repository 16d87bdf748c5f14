/** `gatehouse verify-data`: verifies all stored data without a node. */
import type { Command } from "commander";
import { addNodeFiles } from "../usage/node-flags.js";
import type { VerifyFlags } from "./stored-data.js";

export function addVerifyData(command: Command): void {
  addNodeFiles(command)
    .option("--json", "Print JSON.")
    .addHelpText(
      "after",
      `
Reads the database and changes nothing; the node may run, or not. Checked are, of every block, that it comes after the one
before it, that an authority signed it, and its senders their transactions; what its transactions made; the commitment
tree up to the roots that headers name; and every program, nullifier and nonce against the checksum that it was stored with,
and against the state that the newest header commits to. What does not fit is told in one line each.

What to do then: restore a backup, or move the database away and let the node follow the chain anew from its peers.

Exit codes: 0 everything fits, 1 something does not, 2 there is no database to look at.

Examples:
  gatehouse verify-data --data-dir /var/lib/gatehouse
  gatehouse verify-data --database postgres://gatehouse:secret@db/gatehouse --json`,
    )
    .action(async (flags: VerifyFlags) => {
      const { verifyData } = await import("./stored-data.js");
      await verifyData(flags);
    });
}
