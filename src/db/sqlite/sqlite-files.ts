/** Locks the files of a SQLite database for one process, and detects files that were deleted or replaced. */
import { stat } from "node:fs/promises";
import type { DatabaseFiles } from "../queries/database.js";
import { lockFile } from "./sqlite.js";

/** Suffix of the lock file, after the path of the file of the chain. */
const lockSuffix = "-lock";

/** Device and inode of a file, which identify it regardless of its path; undefined if the file is missing. */
type FileIdentity = string | undefined;

async function identify(path: string): Promise<FileIdentity> {
  try {
    const { dev, ino } = await stat(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}

/** Files of a database, with a method that releases the lock. */
export interface OpenFiles extends DatabaseFiles {
  close(): Promise<void>;
}

/** Records the identity of files that were just opened, to detect their loss. The first is the file of the chain. */
export async function trackFiles(paths: readonly [string, ...string[]]): Promise<OpenFiles> {
  const opened = await Promise.all(paths.map(identify));
  let unlock: (() => Promise<void>) | undefined;
  return {
    async lock() {
      unlock ??= await lockFile(`${paths[0]}${lockSuffix}`);
      return unlock !== undefined;
    },
    async findLostFile() {
      const current = await Promise.all(paths.map(identify));
      return paths.find((_, i) => current[i] === undefined || current[i] !== opened[i]);
    },
    async close() {
      await unlock?.();
    },
  };
}
