/** Connections of the SQLite driver, which is archived upstream and may be replaced. */
import { LRUCache } from "lru-cache";
import type { Database as SqliteConnection, default as Sqlite3, Statement } from "sqlite3";
import { lazyRequire } from "../../base/async/lazy-require.js";
import { missingPackage } from "../../base/async/optional-package.js";
import { type DatabaseErrorKind, isDatabaseError, markDatabaseError } from "../../base/errors/database-error-kind.js";
import { DatabaseError, type PreparedQuery, type QueryValue } from "../queries/database.js";
import type { LivenessMonitor } from "../queries/liveness.js";
import type { DiskCheck } from "./disk-check.js";

const load = lazyRequire<typeof Sqlite3>("sqlite3");

/** @throws DatabaseError if the driver, an optional package that npm may fail to compile, is not installed. */
export function driver(): typeof Sqlite3 {
  try {
    return load();
  } catch {
    throw new DatabaseError(
      `${missingPackage("SQLite", "sqlite3")} (where there is no prebuilt one, it takes Python 3, make and a C++ compiler).`,
    );
  }
}

export const busyTimeout = "PRAGMA busy_timeout = 1500";

interface ReaderOptions {
  readonly path: string;
  /** Bytes of the file that are memory-mapped. */
  readonly mmapBytes: number;
  readonly liveness: LivenessMonitor;
  readonly disk: Pick<DiskCheck, "runRead">;
}

/** Creates read-only connections for prepared queries. knex would compile a query on each call. */
export function createReaders(options: ReaderOptions, count: number) {
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
export function createReader({ path, mmapBytes, liveness, disk }: ReaderOptions) {
  let connection: Promise<SqliteConnection> | undefined;
  let pending = 0;

  async function open(): Promise<SqliteConnection> {
    const opened = await connect(path, driver().OPEN_READONLY);
    await toPromise((done) => opened.exec(`${busyTimeout}; PRAGMA mmap_size = ${mmapBytes}`, done));
    cacheStatements(opened);
    return opened;
  }

  async function send<Row>(text: string, values: readonly QueryValue[]): Promise<Row[]> {
    connection ??= open().catch((error: unknown) => {
      connection = undefined;
      throw error;
    });
    const opened = await connection;
    const found = toPromise<Row[]>((done) => opened.all(text, values, done));
    return await liveness.track(found, (error) => !isDatabaseError(error));
  }

  return {
    /** Returns the number of queries in flight. */
    pending: () => pending,
    async all<Row>(text: string, values: readonly QueryValue[]): Promise<Row[]> {
      pending++;
      try {
        return await disk.runRead(() => send<Row>(text, values));
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
export function connect(path: string, mode?: number): Promise<SqliteConnection> {
  const { Database, OPEN_READWRITE, OPEN_CREATE } = driver();
  return toPromise<SqliteConnection>((done) => {
    const created: SqliteConnection = new Database(path, mode ?? OPEN_READWRITE | OPEN_CREATE, (error) =>
      done(error, created),
    );
  });
}

export function send(connection: SqliteConnection, text: string, values: readonly QueryValue[]): Promise<unknown[]> {
  return new Promise((resolve, reject) => {
    connection.all(text, values, (error, rows) => (error === null ? resolve(rows) : reject(error)));
  });
}

/** Classifies an error code of SQLite; returns undefined if the query itself is wrong. */
export function errorKindOf(code = ""): DatabaseErrorKind | undefined {
  if (/^SQLITE_(BUSY|LOCKED)/.test(code)) {
    return "locked";
  }
  // The file is corrupt, or is not a SQLite database.
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(code)) {
    return "damaged";
  }
  return /^SQLITE_(FULL|IOERR|CANTOPEN|READONLY)/.test(code) ? "unavailable" : undefined;
}

/** Calls a function of the driver, converts its callback to a promise, and marks database errors. */
export function toPromise<T = void>(
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

type Callback = (this: unknown, error: Error | null, rows?: unknown[]) => void;
type QueryMethod = (text: string, values: readonly unknown[], callback: Callback) => unknown;

/** Methods of a connection that are replaced, in the only forms that the query builder uses. */
interface QueryMethods {
  all: QueryMethod;
  run: QueryMethod;
  close(callback: (error: Error | null) => void): void;
}

/** Limit on compiled queries of a connection. Lists of each length need a query of their own. */
const maxStatements = 256;

/** Matches queries that are worth caching. Statements that start or end a transaction are not. */
const isRepeated = /^(select|insert|update|delete|with)\b/i;

/** Caches the compiled queries of a connection until it is closed. */
export function cacheStatements(connection: SqliteConnection): void {
  const methods = connection as unknown as QueryMethods;
  const statements = new LRUCache<string, Promise<Statement>>({
    max: maxStatements,
    // The driver finalizes a statement only after its queued calls.
    dispose: (statement) => void statement.then((compiled) => compiled.finalize()).catch(() => undefined),
  });

  function compile(text: string): Promise<Statement> {
    const cached = statements.get(text);
    if (cached !== undefined) {
      return cached;
    }
    const prepared = new Promise<Statement>((resolve, reject) => {
      const statement: Statement = connection.prepare(text, (error: Error | null) =>
        error === null ? resolve(statement) : reject(error),
      );
    });
    statements.set(text, prepared);
    // The next call compiles the query again.
    prepared.catch(() => statements.delete(text));
    return prepared;
  }

  for (const method of ["all", "run"] as const) {
    const original = methods[method].bind(connection);
    methods[method] = (text, values, callback) => {
      if (!isRepeated.test(text)) {
        return original(text, values, callback);
      }
      return void compile(text)
        .then((statement) => {
          statement[method](values, function (this: unknown, error: Error | null, rows?: unknown[]) {
            if (error === null) {
              callback.call(this, error, rows);
            } else {
              // A statement that met a lock may still be active. Until it is reset, it reads its old snapshot of the
              // database.
              statement.reset(() => callback.call(this, error));
            }
          });
        })
        .catch((error: unknown) => callback(error as Error));
    };
  }

  const close = methods.close.bind(connection);
  // SQLite cannot close a connection that has compiled queries.
  methods.close = (callback) =>
    void Promise.allSettled(statements.values())
      .then(() => statements.clear())
      .then(() => close(callback));
}
