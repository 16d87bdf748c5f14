/** The files of a database of SQLite: one process writes to them, and only while they are where it opened them. */
import { stat } from "node:fs/promises";
import type { DatabaseFiles } from "../queries/database.js";
import { lockFile } from "./sqlite.js";

/** What the file that one process locks is called after that of the chain. */
const lockSuffix = "-lock";

/** What tells a file from others, whatever it is called. */
type FileIdentity = string | undefined;

async function identify(path: string): Promise<FileIdentity> {
  try {
    const { dev, ino } = await stat(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}

/** The files of a database, with what ends the lock. */
export interface OpenFiles extends DatabaseFiles {
  close(): Promise<void>;
}

/** Remembers files that were opened a moment ago; the first of them is that of the chain. */
export async function watchFiles(paths: readonly [string, ...string[]]): Promise<OpenFiles> {
  const opened = await Promise.all(paths.map(identify));
  let unlock: (() => Promise<void>) | undefined;
  return {
    async lock() {
      unlock ??= await lockFile(`${paths[0]}${lockSuffix}`);
      return unlock !== undefined;
    },
    async lost() {
      const found = await Promise.all(paths.map(identify));
      return paths.find((_, i) => found[i] === undefined || found[i] !== opened[i]);
    },
    async close() {
      await unlock?.();
    },
  };
}
