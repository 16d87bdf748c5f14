/** `gatehouse backup`: saves a node to a folder. */
import type { Command } from "commander";
import { rmSync } from "node:fs";
import { resolve } from "node:path";
import type { BackupManifest } from "../../node/data/backup.js";
import { describeWarnings, printResult } from "../terminal/output.js";
import { type Progress, startProgress } from "../terminal/progress.js";
import { addNodeFiles, loadNodeConfig } from "../usage/node-options.js";

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
    .action(async (name: string, flags: { readonly withoutKey?: boolean; readonly json?: boolean }) => {
      const folder = resolve(name);
      const manifest = await saveNode(command, folder, flags.withoutKey !== true);
      const warnings = warningsOf(manifest);
      printResult(flags, { folder, ...manifest, warnings }, () => {
        const { node, network, head, files } = manifest;
        const mib = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) / 1024 / 1024;
        return [
          `node     ${node ?? "none yet"}`,
          `network  ${network}`,
          `block    ${head.number}`,
          `saved    ${folder}: ${files.length} files, ${mib.toFixed(1)} MiB`,
          ...describeWarnings(warnings),
        ];
      });
    });
}

/** Creates a backup. SIGINT and SIGTERM delete the incomplete backup. */
async function saveNode(command: Command, folder: string, withKey: boolean): Promise<BackupManifest> {
  const sources = await loadNodeConfig(command);
  const { createBackup } = await import("../../node/data/backup.js");
  let bar: Progress | undefined;
  let draft: string | undefined;
  const interrupt = (): void => {
    if (draft !== undefined) {
      rmSync(draft, { recursive: true, force: true });
    }
    process.exit(130);
  };
  process.once("SIGINT", interrupt).once("SIGTERM", interrupt);
  try {
    return await createBackup({
      ...{ ...sources, folder, withKey },
      onSaved(unit, done, total) {
        bar ??= startProgress(unit, total);
        bar.update(done, total);
      },
      onDraft: (path) => (draft = path),
    });
  } finally {
    bar?.end();
    process.off("SIGINT", interrupt).off("SIGTERM", interrupt);
  }
}

/** Returns the reasons why a node restored from the backup would not start or would lack its key. */
export function warningsOf({ node, key }: BackupManifest): string[] {
  if (key === null) {
    return [
      `The backup does not contain the key; to restore it, copy the key of ${node ?? "the node"} from where you store it.`,
    ];
  }
  return node === null || node === key
    ? []
    : [`The key is that of ${key}, but the database belongs to ${node}: a node with this key does not start.`];
}
