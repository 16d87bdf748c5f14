/** Opens SQLite, embedded. */
import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import type { Knex } from "knex";
import type { Database as SqliteConnection } from "sqlite3";
import { createPrivateDirectory, ensurePrivateFile, makeFilePrivate } from "../../base/files/private-files.js";
import { type ConnectionPools, openConnectionPools } from "../queries/connection-pools.js";
import { type DatabaseFiles, DatabaseError, temporaryError } from "../queries/database.js";
import { dialects } from "../queries/dialects.js";
import { LivenessMonitor } from "../queries/liveness.js";
import { createDiskCheck, type DiskCheck } from "./disk-check.js";
import {
  busyTimeout,
  cacheStatements,
  connect,
  createReader,
  createReaders,
  driver,
  errorKindOf,
  send,
  toPromise,
} from "./sqlite-connections.js";

/** Number of connections for reads through the query builder, and for prepared queries of lists. */
const readers = 2;
const listReaders = 2;
/**
 * Bytes of the file that are memory-mapped for reads by key. Mapped pages count as memory of the node once they are
 * read.
 */
const mappedBytes = 32 * 1024 * 1024;

const pragmas = [busyTimeout, "PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON"];

/** Opens one file of a database. Creates the file and its directory if they do not exist. */
export async function openSqlite(path: string): Promise<ConnectionPools> {
  await createPrivateDirectory(dirname(path)).catch((error: unknown) => {
    throw explainSqlite(path, error);
  });
  // SQLite creates the -wal and -shm files with the mode of this file.
  await ensurePrivateFile(path);
  await Promise.all(["-wal", "-shm"].map((suffix) => makeFilePrivate(`${path}${suffix}`)));
  const disk = createDiskCheck(path);
  const liveness = new LivenessMonitor();
  const queues = {
    point: createReaders({ path, mmapBytes: mappedBytes, liveness, disk }, 1),
    list: createReaders({ path, mmapBytes: 0, liveness, disk }, listReaders),
  };
  const connections = await orClose(disk, async () => {
    await checkUnlocked(path, disk);
    return await openConnectionPools({
      ...commonDeps(path, disk, {
        connection: { filename: path },
        pool: {
          ...settings.pool,
          afterCreate: (
            connection: SqliteConnection,
            done: (error: Error | null, connection: SqliteConnection) => void,
          ) => {
            cacheStatements(connection);
            connection.exec(pragmas.join(";"), (error) => done(error, connection));
          },
        },
      }),
      liveness,
      readers,
      prepare: (text, queue = "point") => queues[queue].prepare(text),
    });
  });
  return {
    ...connections,
    async close() {
      // Close read-only connections first: the last connection checkpoints the write-ahead log, which needs write
      // access.
      await Promise.all([queues.point.close(), queues.list.close()]);
      await connections.close();
      await disk.close();
    },
  };
}

/** Opens connections. Closes the disk check if this fails. */
async function orClose(disk: DiskCheck, open: () => Promise<ConnectionPools>): Promise<ConnectionPools> {
  try {
    return await open();
  } catch (error) {
    await disk.close();
    throw error;
  }
}

/** @throws DatabaseError if another process holds the write lock, such as a backup or an open SQLite shell. */
async function checkUnlocked(path: string, disk: DiskCheck): Promise<void> {
  try {
    const connection = await connect(path);
    try {
      await toPromise((done) => connection.exec(`${busyTimeout}; BEGIN IMMEDIATE; ROLLBACK`, done));
    } finally {
      await toPromise((done) => connection.close(done));
    }
  } catch (error) {
    throw explainSqlite(path, await disk.examine(error));
  }
}

/**
 * Locks a separate file until the lock is released or this process ends. SQLite uses a lock of the operating system,
 * which releases it when the process ends.
 *
 * @returns a function that releases the lock; undefined if another connection holds it.
 * @throws DatabaseError
 */
async function lockFile(path: string): Promise<(() => Promise<void>) | undefined> {
  await ensurePrivateFile(path);
  let connection: SqliteConnection | undefined;
  const close = (): Promise<void> => toPromise((done) => connection!.close(done));
  try {
    connection = await connect(path);
    await toPromise((done) => connection!.exec(`${busyTimeout}; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE`, done));
    return close;
  } catch (error) {
    if (connection !== undefined) {
      await close();
    }
    if ((error as NodeJS.ErrnoException).code === "SQLITE_BUSY") {
      return undefined;
    }
    throw explainSqlite(path, error);
  }
}

/** Opens an existing file for reads only. Creates and changes no file. */
export async function openSqliteForReading(path: string): Promise<ConnectionPools> {
  if (!existsSync(path)) {
    throw new DatabaseError(`There is no database at ${path}; give the node's --data-dir, or its --database.`);
  }
  driver();
  const disk = createDiskCheck(path);
  const liveness = new LivenessMonitor();
  const reader = createReaders({ path, mmapBytes: 0, liveness, disk }, 1);
  const connections = await orClose(disk, () =>
    openConnectionPools({
      // The query builder adds flags for writing; the mode in the URI overrides them.
      ...commonDeps(path, disk, {
        connection: { filename: `${pathToFileURL(path).href}?mode=ro`, flags: ["OPEN_URI"] },
      }),
      liveness,
      readers: 1,
      prepare: (text) => reader.prepare(text),
    }),
  );
  return {
    ...connections,
    async close() {
      await Promise.all([reader.close(), connections.close()]);
      await disk.close();
    },
  };
}

const settings = { client: "sqlite3", useNullAsDefault: true, pool: { idleTimeoutMillis: 3_600_000 } };

/** @param more settings of knex besides the common ones. */
function commonDeps(path: string, disk: DiskCheck, more: Knex.Config) {
  const adapter = {
    ...{ dialect: dialects.sqlite, errorKindOf, send },
    ...disk,
    monitor: <T>(work: () => Promise<T>) => work(),
    onDatabaseError: () => undefined,
  };
  return {
    poolOf: () => ({ adapter, settings: { ...settings, ...more } }),
    probeQuery: "SELECT 1 FROM sqlite_master LIMIT 1",
    explain: (error: unknown) => explainSqlite(path, error),
    inspect: (depth?: "full" | "quick") => inspect(path, disk, depth),
    onDiskChange: disk.onChange,
  };
}

/** Matches the messages of SQLite about pages that it could not read. */
const unreadPage = /error code=|failed to get page/;

/** Limit on messages that SQLite returns about a corrupt file. */
const maxInspected = 20;

/**
 * Checks all pages over a separate connection and returns messages about corruption. A full check also compares the
 * indexes with their tables.
 */
async function inspect(path: string, disk: DiskCheck, depth: "full" | "quick" = "full"): Promise<string[]> {
  const reader = createReader({ path, mmapBytes: 0, liveness: new LivenessMonitor(), disk });
  const check = depth === "quick" ? "quick_check" : "integrity_check";
  let isRepeated = false;
  try {
    return await disk.runRead(async () => {
      const rows = await reader.all<Readonly<Record<typeof check, string>>>(`PRAGMA ${check}(${maxInspected})`, []);
      const found = rows.map(({ [check]: text }) => text).filter((text) => text !== "ok");
      // The first time, a page that could not be read is an error, which is examined.
      if (!isRepeated && found.some((text) => unreadPage.test(text))) {
        isRepeated = true;
        throw Object.assign(new Error(found[0]), { code: "SQLITE_IOERR" });
      }
      return found;
    });
  } finally {
    await reader.close();
  }
}

/** Returns the error for the operator for a file that cannot be used, with the reason and the remedy. */
export function explainSqlite(path: string, error: unknown): DatabaseError {
  if (error instanceof DatabaseError) {
    return error;
  }
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
    case "SQLITE_NOTADB":
    case "SQLITE_CORRUPT":
      return new DatabaseError(
        `The file ${path} is not a usable SQLite database; restore it from a backup, or give another --database.`,
      );
    case "SQLITE_BUSY":
      return temporaryError(
        `The file ${path} is locked by another process, such as a backup or a sqlite3 shell; stop that process (\`fuser ${path}\` shows its id), then start again.`,
        "locked",
      );
    case "SQLITE_FULL":
      return new DatabaseError(`The disk of ${path} is full (${code}); free disk space, then try again.`);
    default:
      return new DatabaseError(
        `The database ${path} cannot be opened (${code ?? message}); check that the directory exists, is writable and has free space.`,
      );
  }
}

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
