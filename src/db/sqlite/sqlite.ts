/**
 * Opens SQLite, embedded. The driver is archived upstream and may be replaced, so only this file and
 * sqlite-statements.ts import it.
 */
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import type { Database as SqliteConnection, default as Sqlite3 } from "sqlite3";
import { type DatabaseErrorKind, isDatabaseError, markDatabaseError } from "../../base/errors/database-error-kind.js";
import { lazyRequire } from "../../base/async/lazy-require.js";
import { ensurePrivateFile, makeFilePrivate, createPrivateDirectory } from "../../base/files/private-files.js";
import { type ConnectionPools, openConnectionPools } from "../queries/connection-pools.js";
import { DatabaseError, type PreparedQuery, type QueryValue, temporaryError } from "../queries/database.js";
import { dialects } from "../queries/dialects.js";
import { LivenessMonitor } from "../queries/liveness.js";
import { cacheStatements } from "./sqlite-statements.js";

const load = lazyRequire<typeof Sqlite3>("sqlite3");

/** @throws DatabaseError if the driver, an optional dependency that npm may fail to compile, is not installed. */
function driver(): typeof Sqlite3 {
  try {
    return load();
  } catch {
    throw new DatabaseError(
      "SQLite is not installed; install Python 3, make and a C++ compiler, then install this package again.",
    );
  }
}

/** Number of connections for reads through the query builder, and for prepared queries of lists. */
const readers = 2;
const listReaders = 2;
/**
 * Bytes of the file that are memory-mapped for reads by key. Mapped pages count as memory of the node once they are
 * read.
 */
const mappedBytes = 32 * 1024 * 1024;

const busyTimeout = "PRAGMA busy_timeout = 1500";
const pragmas = [busyTimeout, "PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON"];

/** Opens one file of a database. Creates the file and its directory if they do not exist. */
export async function openSqlite(path: string): Promise<ConnectionPools> {
  await createPrivateDirectory(dirname(path)).catch((error: unknown) => {
    throw explainSqlite(path, error);
  });
  // SQLite creates the -wal and -shm files with the mode of this file.
  await ensurePrivateFile(path);
  await Promise.all(["-wal", "-shm"].map((suffix) => makeFilePrivate(`${path}${suffix}`)));
  await checkUnlocked(path);
  const liveness = new LivenessMonitor();
  const queues = {
    point: createReaders({ path, mmapBytes: mappedBytes, liveness }, 1),
    list: createReaders({ path, mmapBytes: 0, liveness }, listReaders),
  };
  const connections = await openConnectionPools({
    ...commonDeps(path),
    liveness,
    settings: {
      ...settings,
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
    },
    readers,
    prepare: (text, queue = "point") => queues[queue].prepare(text),
  });
  return {
    ...connections,
    async close() {
      // Close read-only connections first: the last connection checkpoints the write-ahead log, which needs write
      // access.
      await Promise.all([queues.point.close(), queues.list.close()]);
      await connections.close();
    },
  };
}

/** @throws DatabaseError if another process holds the write lock, such as a backup or an open SQLite shell. */
async function checkUnlocked(path: string): Promise<void> {
  try {
    const connection = await connect(path);
    try {
      await toPromise((done) => connection.exec(`${busyTimeout}; BEGIN IMMEDIATE; ROLLBACK`, done));
    } finally {
      await toPromise((done) => connection.close(done));
    }
  } catch (error) {
    throw explainSqlite(path, error);
  }
}

/**
 * Locks a separate file until the lock is released or this process ends. SQLite uses a lock of the operating system,
 * which releases it when the process ends.
 *
 * @returns a function that releases the lock; undefined if another connection holds it.
 * @throws DatabaseError
 */
export async function lockFile(path: string): Promise<(() => Promise<void>) | undefined> {
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
  const liveness = new LivenessMonitor();
  const reader = createReaders({ path, mmapBytes: 0, liveness }, 1);
  const connections = await openConnectionPools({
    ...commonDeps(path),
    liveness,
    // The query builder adds flags for writing; the mode in the URI overrides them.
    settings: { ...settings, connection: { filename: `${pathToFileURL(path).href}?mode=ro`, flags: ["OPEN_URI"] } },
    readers: 1,
    prepare: (text) => reader.prepare(text),
  });
  return {
    ...connections,
    async close() {
      await Promise.all([reader.close(), connections.close()]);
    },
  };
}

const settings = { client: "sqlite3", useNullAsDefault: true, pool: { idleTimeoutMillis: 3_600_000 } };

function commonDeps(path: string) {
  return {
    adapter: {
      ...{ dialect: dialects.sqlite, errorKindOf, send },
      monitor: <T>(work: () => Promise<T>) => work(),
      onDatabaseError: () => undefined,
    },
    probeQuery: "SELECT 1 FROM sqlite_master LIMIT 1",
    explain: (error: unknown) => explainSqlite(path, error),
    inspect: (depth?: "full" | "quick") => inspect(path, depth),
  };
}

/** Limit on messages that SQLite returns about a corrupt file. */
const maxInspected = 20;

/**
 * Checks all pages over a separate connection and returns messages about corruption. A full check also compares the
 * indexes with their tables.
 */
async function inspect(path: string, depth: "full" | "quick" = "full"): Promise<string[]> {
  const reader = createReader({ path, mmapBytes: 0, liveness: new LivenessMonitor() });
  try {
    const check = depth === "quick" ? "quick_check" : "integrity_check";
    const rows = await reader.all<Readonly<Record<typeof check, string>>>(`PRAGMA ${check}(${maxInspected})`, []);
    return rows.map(({ [check]: text }) => text).filter((text) => text !== "ok");
  } finally {
    await reader.close();
  }
}

function send(connection: SqliteConnection, text: string, values: readonly QueryValue[]): Promise<unknown[]> {
  return new Promise((resolve, reject) => {
    connection.all(text, values, (error, rows) => (error === null ? resolve(rows) : reject(error)));
  });
}

/** Classifies an error code of SQLite; returns undefined if the query itself is wrong. */
function errorKindOf(code = ""): DatabaseErrorKind | undefined {
  if (/^SQLITE_(BUSY|LOCKED)/.test(code)) {
    return "locked";
  }
  // The file is corrupt, or is not a SQLite database.
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(code)) {
    return "damaged";
  }
  return /^SQLITE_(FULL|IOERR|CANTOPEN|READONLY)/.test(code) ? "unavailable" : undefined;
}

interface ReaderOptions {
  readonly path: string;
  /** Bytes of the file that are memory-mapped. */
  readonly mmapBytes: number;
  readonly liveness: LivenessMonitor;
}

/** Creates read-only connections for prepared queries. knex would compile a query on each call. */
function createReaders(options: ReaderOptions, count: number) {
  const readers = Array.from({ length: count }, () => createReader(options));
  return {
    prepare<Row>(text: string): PreparedQuery<Row> {
      return (...values) =>
        readers
          .reduce((leastBusy, reader) => (reader.pending() < leastBusy.pending() ? reader : leastBusy))
          .all<Row>(text, values);
    },
    async close(): Promise<void> {
      await Promise.all(readers.map((reader) => reader.close()));
    },
  };
}

/** Creates a read-only connection that opens on first use. After an error, the next query tries again. */
function createReader({ path, mmapBytes, liveness }: ReaderOptions) {
  let connection: Promise<SqliteConnection> | undefined;
  let pending = 0;

  async function open(): Promise<SqliteConnection> {
    const opened = await connect(path, driver().OPEN_READONLY);
    await toPromise((done) => opened.exec(`${busyTimeout}; PRAGMA mmap_size = ${mmapBytes}`, done));
    cacheStatements(opened);
    return opened;
  }

  return {
    /** Returns the number of queries in flight. */
    pending: () => pending,
    async all<Row>(text: string, values: readonly QueryValue[]): Promise<Row[]> {
      pending++;
      try {
        connection ??= open().catch((error: unknown) => {
          connection = undefined;
          throw error;
        });
        const opened = await connection;
        const found = toPromise<Row[]>((done) => opened.all(text, values, done));
        return await liveness.track(found, (error) => !isDatabaseError(error));
      } finally {
        pending--;
      }
    },
    async close(): Promise<void> {
      // Errors of an attempt in progress go to the queries that wait for it.
      const opened = await connection?.catch(() => undefined);
      if (opened !== undefined) {
        await toPromise((done) => opened.close(done));
      }
    },
  };
}

/** Opens a connection; by default for writes, and creates a missing file. */
function connect(path: string, mode?: number): Promise<SqliteConnection> {
  const { Database, OPEN_READWRITE, OPEN_CREATE } = driver();
  return toPromise<SqliteConnection>((done) => {
    const created: SqliteConnection = new Database(path, mode ?? OPEN_READWRITE | OPEN_CREATE, (error) =>
      done(error, created),
    );
  });
}

/** Calls a function of the driver, converts its callback to a promise, and marks database errors. */
function toPromise<T = void>(
  start: (done: (error: NodeJS.ErrnoException | null, value?: T) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    start((error, value) => {
      if (error === null) {
        resolve(value as T);
        return;
      }
      const kind = errorKindOf(error.code);
      if (kind !== undefined) {
        markDatabaseError(error, kind);
      }
      reject(error);
    });
  });
}

/** Returns the error for the operator for a file that cannot be used, with the reason and the remedy. */
export function explainSqlite(path: string, error: unknown): DatabaseError {
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
