/** Implementation of `gatehouse backup`. */
import { rmSync } from "node:fs";
import { type BackupDeps, createBackup } from "../../node/data/backup.js";
import type { BackupManifest } from "../../node/data/backup-manifest.js";
import type { NodeFiles } from "../usage/node-flags.js";
import { describeWarnings, print } from "../terminal/output.js";
import { type Progress, startProgress } from "../terminal/progress.js";
import { readNodeConfig } from "./node-config.js";

/** Creates a backup and prints its summary. SIGINT and SIGTERM delete the incomplete backup. */
export async function runBackup(
  flags: NodeFiles,
  target: Pick<BackupDeps, "folder" | "withKey">,
  json: boolean,
): Promise<void> {
  const deps = { ...readNodeConfig(flags), ...target };
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
    const manifest = await createBackup({
      ...deps,
      onSaved(unit, done, total) {
        bar ??= startProgress(unit, total);
        bar.update(done, total);
      },
      onDraft: (path) => (draft = path),
    });
    bar?.end();
    const warnings = warningsOf(manifest);
    print(
      ...(json
        ? [JSON.stringify({ folder: deps.folder, ...manifest, warnings })]
        : describe(manifest, deps.folder, warnings)),
    );
  } finally {
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

function describe({ node, network, head, files }: BackupManifest, folder: string, warnings: string[]): string[] {
  const mib = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) / 1024 / 1024;
  return [
    `node     ${node ?? "none yet"}`,
    `network  ${network}`,
    `block    ${head.number}`,
    `saved    ${folder}: ${files.length} files, ${mib.toFixed(1)} MiB`,
    ...describeWarnings(warnings),
  ];
}
