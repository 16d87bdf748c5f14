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
    .option("--without-key", "Leave the key out; where it is kept elsewhere.")
    .option("--json", "Print JSON.")
    .addHelpText(
      "after",
      `
The folder holds the key, the genesis, the database as of
one moment (two files of SQLite, also where the node uses
PostgreSQL), the peers file, the writers file and the
configuration file where there are any, and backup.json with
a hash of each. Whoever has it can be the node: keep it as
you keep the key. Until it is whole it has another name,
which begins with a dot and ends with .draft.

Exit codes: 0 saved, 1 not saved.

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
    .option("--data-dir <DIR>", "The new data directory; empty, or not there.", optionsByKey.dataDir.fallback)
    .option("--json", "Print JSON.")
    .addHelpText(
      "after",
      `
Compares every file with its hash, looks at the whole
database as verify-data does, says who the node will be, and
asks the peers that its operator has named how far they are.
A backup that is damaged is not restored.

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
