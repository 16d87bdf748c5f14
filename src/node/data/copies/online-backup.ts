/** Backs up a database to SQLite files while a node may write to it. */
import { rm, stat } from "node:fs/promises";
import { ensurePrivateFile } from "../../../base/files/private-files.js";
import { startPeriodicTask } from "../../../base/async/periodic-task.js";
import { syncFile } from "../../../base/files/sync-path.js";
import { copyDatabase } from "./copy.js";
import { fileOf, mempoolSuffix, withDatabase } from "../../../db/open.js";
import { explainSqlite, openSqliteForReading } from "../../../db/sqlite/sqlite.js";

export type OnBackupProgress = (unit: "MiB" | "rows", done: number, total: number) => void;

const pollIntervalMs = 200;
const mebibyte = 1024 * 1024;

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
    await backupFile(`${file}${suffix}`, `${path}${suffix}`, onProgress);
  }
}

async function backupFile(from: string, to: string, onProgress: OnBackupProgress): Promise<void> {
  const source = await openSqliteForReading(from);
  try {
    // VACUUM INTO accepts an empty file, and would otherwise create one that other users can read.
    await ensurePrivateFile(to);
    const [{ bytes: total } = { bytes: 0 }] = await source.read.rows<{ bytes: number }>((sql) =>
      sql.raw("SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()"),
    );
    const toMib = (bytes: number): number => Math.round(bytes / mebibyte);
    const polls = startPeriodicTask(
      async () => onProgress("MiB", toMib((await stat(to)).size), toMib(total)),
      pollIntervalMs,
      () => undefined,
    );
    try {
      await source.read.run((sql) => sql.raw("VACUUM INTO ?", [to]));
    } catch (error) {
      // The source is only read, so it is the other disk that is full.
      throw (error as NodeJS.ErrnoException).code === "SQLITE_FULL" ? explainSqlite(to, error) : error;
    } finally {
      await polls.stop();
    }
  } finally {
    await source.close();
  }
  await syncFile(to);
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

/** Removes the auxiliary files that SQLite leaves next to closed databases. */
export async function removeAuxiliaryFiles(path: string): Promise<void> {
  const files = [mempoolSuffix, ""].flatMap((part) => ["-wal", "-shm"].map((suffix) => `${path}${part}${suffix}`));
  await Promise.all([...files, `${path}-lock`].map((file) => rm(file, { force: true })));
}
