/** Files of a SQLite database. */
import { rm } from "node:fs/promises";

/** Removes the files of a database and of its mempool. */
export async function removeSqlite(file: string): Promise<void> {
  const parts = [file, `${file}-mempool`];
  const all = parts.flatMap((part) => [part, `${part}-wal`, `${part}-shm`, `${part}-journal`]);
  await Promise.all(all.map((path) => rm(path, { force: true })));
}
