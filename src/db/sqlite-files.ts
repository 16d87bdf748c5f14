/** Backs up the files of a SQLite database while a node may write to it. */
import { rm, stat } from "node:fs/promises";
import { startPeriodicTask } from "../base/async/periodic-task.js";
import { ensurePrivateFile } from "../base/files/private-files.js";
import { syncFile } from "../base/files/sync-path.js";
import { mempoolSuffix } from "./open.js";
import { explainSqlite, openSqliteForReading } from "./sqlite/sqlite.js";

const pollIntervalMs = 200;
const mebibyte = 1024 * 1024;

/**
 * Backs up one file from one snapshot, to a new file that is synced. Does not block writers.
 *
 * @param onProgress called with the copied and the total MiB.
 * @throws DatabaseError
 */
export async function backupFile(
  from: string,
  to: string,
  onProgress: (done: number, total: number) => void,
): Promise<void> {
  const source = await openSqliteForReading(from);
  try {
    // VACUUM INTO accepts an empty file, and would otherwise create one that other users can read.
    await ensurePrivateFile(to);
    const [{ bytes: total } = { bytes: 0 }] = await source.read.rows<{ bytes: number }>((sql) =>
      sql.raw("SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()"),
    );
    const toMib = (bytes: number): number => Math.round(bytes / mebibyte);
    const polls = startPeriodicTask(
      async () => onProgress(toMib((await stat(to)).size), toMib(total)),
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

/** Removes the auxiliary files that SQLite leaves next to closed databases. */
export async function removeAuxiliaryFiles(path: string): Promise<void> {
  const files = [mempoolSuffix, ""].flatMap((part) => ["-wal", "-shm"].map((suffix) => `${path}${part}${suffix}`));
  await Promise.all([...files, `${path}-lock`].map((file) => rm(file, { force: true })));
}
