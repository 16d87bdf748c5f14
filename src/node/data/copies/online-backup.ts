/** Backs up a database of any engine to SQLite files while a node may write to it. */
import { syncFile } from "../../../base/files/sync-path.js";
import { fileOf, mempoolSuffix, withDatabase } from "../../../db/open.js";
import { backupFile } from "../../../db/sqlite-files.js";
import { copyDatabase } from "./copy.js";

export type OnBackupProgress = (unit: "MiB" | "rows", done: number, total: number) => void;

/**
 * Backs up both parts, each from one snapshot, the mempool first. A block is stored before its transactions leave the
 * mempool, so this order loses no transaction between the parts. Does not block writers.
 *
 * @param path of the new file of the chain; the file of the mempool is created next to it.
 * @throws DatabaseError
 */
export async function backupDatabase(url: string, path: string, onProgress: OnBackupProgress): Promise<void> {
  const file = fileOf(url);
  if (file === undefined) {
    await backupServer(url, path, onProgress);
    return;
  }
  for (const suffix of [mempoolSuffix, ""]) {
    await backupFile(`${file}${suffix}`, `${path}${suffix}`, (done, total) => onProgress("MiB", done, total));
  }
}

/** Copies a server database row by row into SQLite files, which can be restored to any engine. */
async function backupServer(url: string, path: string, onProgress: OnBackupProgress): Promise<void> {
  await withDatabase(url, (source) =>
    withDatabase(`sqlite:${path}`, (target) =>
      copyDatabase({
        ...{ source, target, sourceState: "a server" },
        onProgress: (step, done, total) => (step === "copied" ? onProgress("rows", done, total) : undefined),
        confirm: () => Promise.resolve(),
      }),
    ),
  );
  for (const suffix of [mempoolSuffix, ""]) {
    await syncFile(`${path}${suffix}`);
  }
}
