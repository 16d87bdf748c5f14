/** `gatehouse backup` and `gatehouse restore`: save a node to a folder, and restore it. */
import type { Command } from "commander";
import { resolve } from "node:path";
import { optionsByKey } from "../../config/options.js";
import { addNodeFiles, type NodeFiles } from "../usage/node-flags.js";

interface BackupFlags extends NodeFiles {
  /** True with `--without-key`. */
  readonly withoutKey?: boolean;
  readonly json?: boolean;
}

export function addBackup(command: Command): void {
  addNodeFiles(command.argument("<FOLDER>"))
    .option("--without-key", "Leave the key out, if you store it elsewhere.")
    .option("--json", "Print JSON.")
    .addHelpText(
      "after",
      `
The folder holds the key, the genesis, a consistent snapshot
of the database (two SQLite files, even if the node uses
PostgreSQL), the peers, writers and configuration files if
they exist, and backup.json with a hash of each file. Anyone
with the backup can impersonate the node: protect it like
the key. Until it is complete, the folder's name starts with
a dot and ends with .draft.

Exit codes: 0 backed up, 1 not backed up.

Examples:
  gatehouse backup /backup/monday --data-dir data/one
  gatehouse backup /backup/monday --config gatehouse.yaml`,
    )
    .action(async (folder: string, flags: BackupFlags) => {
      const { runBackup } = await import("./run-backup.js");
      await runBackup(flags, { folder: resolve(folder), withKey: flags.withoutKey !== true }, flags.json === true);
    });
}

export function addRestore(command: Command): void {
  command
    .argument("<BACKUP>")
    .option("--data-dir <DIR>", "New data directory; must be empty or not exist.", optionsByKey.dataDir.fallback)
    .option("--json", "Print JSON.")
    .addHelpText(
      "after",
      `
Compares every file with its hash, verifies the full database
like verify-data, prints the identity of the node, and asks
the peers in its peers file for their latest block. A
corrupt backup is not restored.

Exit codes: 0 restored, 1 not restored.

Examples:
  gatehouse restore /backup/monday --data-dir data/restored
  gatehouse start --data-dir data/restored`,
    )
    .action(async (folder: string, flags: { readonly dataDir: string; readonly json?: boolean }) => {
      const { runRestore } = await import("./run-restore.js");
      await runRestore({ folder: resolve(folder), dataDir: resolve(flags.dataDir) }, flags.json === true);
    });
}
