/**
 * Opens the database. The only file that opens an engine: SQLite, embedded, whose driver is archived upstream and may be
 * replaced one day; and PostgreSQL, for many readers over one database.
 */
import knex, { type Knex } from "knex";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import sqlite3, { type Database as SqliteConnection, type Statement } from "sqlite3";
import { markDatabaseTrouble } from "../base/database-trouble.js";

/** The engines. */
export type Engine = "sqlite" | "postgresql";

/** An open database. */
export interface Database {
  readonly engine: Engine;
  /** For reads: several connections, none of which waits for the writer. */
  readonly read: Knex;
  /** For writes: one connection, so that writers queue here and not inside the engine. */
  readonly write: Knex;
  /** A query that is asked often: compiled once where the engine can. In the lane for points when left out. */
  prepare<Row>(sql: string, lane?: Lane): PreparedQuery<Row>;
  /** Closes all connections. */
  close(): Promise<void>;
}

/** Where queries wait for each other: those of a few rows by their keys, and those that may look at many rows. */
export type Lane = "point" | "list";

/** Runs a query with values for its question marks. */
export type PreparedQuery<Row> = (...values: readonly (string | number)[]) => Promise<Row[]>;

/** The database cannot be used; the message is one sentence for the operator. */
export class DatabaseError extends Error {
  override readonly name = "DatabaseError";
}

/** How long a query waits for a free connection: longer than SQLite waits for a lock, so that a lock is told of. */
const acquireWithinMs = 2_000;
/** Connections for reads. */
const sqliteReaders = 2;
const sqliteLists = 2;
/** How much of an SQLite file is mapped for reads by key. All of it counts as the node's memory once it was read. */
const mappedBytes = 32 * 1024 * 1024;
const postgresReaders = 8;

/**
 * Opens a database; an SQLite file is made if there is none.
 *
 * @param url `sqlite:` and a path, or a `postgres://` URL.
 * @throws DatabaseError
 */
export async function openDatabase(url: string): Promise<Database> {
  return url.startsWith("sqlite:") ? await openSqlite(url.slice("sqlite:".length)) : await openPostgres(url);
}

/** The rows of a raw query, whatever the engine wraps them in. */
export function rowsOf<T>(result: unknown): T[] {
  return Array.isArray(result) ? (result as T[]) : (result as { rows: T[] }).rows;
}

async function openSqlite(path: string): Promise<Database> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 }).catch((error: unknown) => {
    throw explainSqlite(path, error);
  });
  const connect = (connections: number): Knex =>
    watchTrouble(
      knex({
        client: "sqlite3",
        connection: { filename: path },
        useNullAsDefault: true,
        log: silent,
        acquireConnectionTimeout: acquireWithinMs,
        pool: {
          min: 0,
          max: connections,
          idleTimeoutMillis: 3_600_000,
          afterCreate: (
            connection: SqliteConnection,
            done: (error: Error | null, connection: SqliteConnection) => void,
          ) => {
            connection.exec(pragmas.join(";"), (error) => done(error, connection));
          },
        },
      }),
      isSqliteTrouble,
    );
  const parts = await checked(connect(sqliteReaders), connect(1), "SELECT 1 FROM sqlite_master LIMIT 1", (error) =>
    explainSqlite(path, error),
  );
  const lanes: Record<Lane, SqliteStatements> = {
    point: createSqliteStatements(path, 1, mappedBytes),
    list: createSqliteStatements(path, sqliteLists, 0),
  };
  return {
    engine: "sqlite",
    ...parts,
    prepare: (sql, lane = "point") => lanes[lane].prepare(sql),
    async close() {
      await Promise.all([lanes.point.close(), lanes.list.close(), parts.close()]);
    },
  };
}

/** Away, locked, full or damaged; not a query that is wrong. */
function isSqliteTrouble(code: string | undefined): boolean {
  return /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CANTOPEN|READONLY|CORRUPT|NOTADB)/.test(code ?? "");
}

/** Queries that are compiled once on each of their connections; knex compiles every query anew. */
interface SqliteStatements {
  prepare<Row>(sql: string): PreparedQuery<Row>;
  close(): Promise<void>;
}

/** @param mmapBytes - How much of the file is read from the page cache in place. */
function createSqliteStatements(path: string, connections: number, mmapBytes: number): SqliteStatements {
  const readers = Array.from({ length: connections }, () => createSqliteReader(path, mmapBytes));
  return {
    prepare<Row>(sql: string): PreparedQuery<Row> {
      return (...values) =>
        readers
          .reduce((calmest, reader) => (reader.pending < calmest.pending ? reader : calmest))
          .all<Row>(sql, values);
    },
    async close() {
      await Promise.all(readers.map((reader) => reader.close()));
    },
  };
}

/** One connection, opened when it is first needed. */
function createSqliteReader(path: string, mmapBytes: number) {
  let connection: Promise<SqliteConnection> | undefined;
  const statements = new Map<string, Promise<Statement>>();
  let pending = 0;

  async function open(): Promise<SqliteConnection> {
    const opened = await settled<SqliteConnection>((done) => {
      const made: SqliteConnection = new sqlite3.Database(path, sqlite3.OPEN_READONLY, (error) => done(error, made));
    });
    await settled((done) => opened.exec(`${busyTimeout}; PRAGMA mmap_size = ${mmapBytes}`, done));
    return opened;
  }

  /** What failed is tried again by the next who asks. */
  async function compile(sql: string): Promise<Statement> {
    connection ??= open().catch((error: unknown) => {
      connection = undefined;
      throw error;
    });
    const opened = await connection;
    return await settled<Statement>((done) => {
      const made: Statement = opened.prepare(sql, (error) => done(error, made));
    });
  }

  return {
    /** Queries under way. */
    get pending() {
      return pending;
    },
    async all<Row>(sql: string, values: readonly (string | number)[]): Promise<Row[]> {
      pending++;
      try {
        let statement = statements.get(sql);
        if (statement === undefined) {
          statement = compile(sql);
          statement.catch(() => statements.delete(sql));
          statements.set(sql, statement);
        }
        const compiled = await statement;
        return await settled<Row[]>((done) => compiled.all(values, done));
      } finally {
        pending--;
      }
    },
    async close(): Promise<void> {
      const opened = await connection;
      if (opened !== undefined) {
        (await Promise.all(statements.values())).forEach((statement) => statement.finalize());
        await settled((done) => opened.close(done));
      }
    },
  };
}

/** A callback's outcome as a promise; trouble of the database is marked. */
function settled<T = void>(
  start: (done: (error: NodeJS.ErrnoException | null, value?: T) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    start((error, value) => {
      if (error === null) {
        resolve(value as T);
        return;
      }
      if (isSqliteTrouble(error.code)) {
        markDatabaseTrouble(error);
      }
      reject(error);
    });
  });
}

const busyTimeout = "PRAGMA busy_timeout = 1500";
const pragmas = [busyTimeout, "PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", "PRAGMA foreign_keys = ON"];

async function openPostgres(url: string): Promise<Database> {
  const { default: pg } = await import("pg");
  // 64-bit integers come as texts by default; every one that is stored fits into a number.
  pg.types.setTypeParser(pg.types.builtins.INT8, Number);
  const connect = (connections: number): Knex =>
    watchTrouble(
      knex({
        client: "pg",
        connection: {
          connectionString: url,
          application_name: "gatehouse",
          connectionTimeoutMillis: acquireWithinMs,
        },
        log: silent,
        acquireConnectionTimeout: acquireWithinMs,
        pool: { min: 0, max: connections, idleTimeoutMillis: 60_000 },
      }),
      // Connection, resources, shutdown, or no word of the server at all; not a query that is wrong.
      (code) => code === undefined || /^(08|53|57|58|E[A-Z])/.test(code),
    );
  const parts = await checked(connect(postgresReaders), connect(1), "SELECT 1", (error) => explainPostgres(url, error));
  return {
    engine: "postgresql",
    ...parts,
    prepare:
      <Row>(sql: string): PreparedQuery<Row> =>
      async (...values) =>
        rowsOf<Row>(await parts.read.raw(sql, [...values])),
  };
}

async function checked(
  read: Knex,
  write: Knex,
  question: string,
  explain: (error: unknown) => DatabaseError,
): Promise<Pick<Database, "read" | "write" | "close">> {
  const close = async (): Promise<void> => {
    await Promise.all([read.destroy(), write.destroy()]);
  };
  try {
    await write.raw(question);
  } catch (error) {
    await close();
    throw explain(error);
  }
  return { read, write, close };
}

/** knex puts the query with its values before what the engine says: documents must not get into the log that way. */
function withoutQuery(error: Error): void {
  const { message, stack = "" } = error;
  error.message = message.slice(message.lastIndexOf(" - ") + 1).replace(/^- /, "");
  error.stack = stack.replace(message, () => error.message);
}

/**
 * Marks errors of a database that does not answer, so that callers are told to try again, and keeps the values of
 * queries out of all errors.
 */
function watchTrouble(database: Knex, isTrouble: (code: string | undefined) => boolean): Knex {
  database.on("query-error", (error: NodeJS.ErrnoException) => {
    withoutQuery(error);
    if (isTrouble(error.code)) {
      markDatabaseTrouble(error);
    }
  });
  const client = database.client as { acquireConnection: () => Promise<unknown> };
  const acquire = client.acquireConnection.bind(client);
  client.acquireConnection = async () => {
    try {
      return await acquire();
    } catch (error) {
      markDatabaseTrouble(error as Error);
      throw error;
    }
  };
  return database;
}

const ignore = (): void => undefined;
/** Everything that knex would print is thrown as well. */
const silent = { debug: ignore, warn: ignore, error: ignore, deprecate: ignore };

function explainPostgres(url: string, error: unknown): DatabaseError {
  const { host, pathname } = new URL(url);
  const { code, message } = error as NodeJS.ErrnoException;
  const what = `The database ${host}${pathname}`;
  switch (code) {
    case "ECONNREFUSED":
    case "ENOTFOUND":
    case "ETIMEDOUT":
      return new DatabaseError(`${what} cannot be reached (${code}); check that PostgreSQL runs there.`);
    case "28P01":
    case "28000":
      return new DatabaseError(`${what} refuses the user or the password in --database.`);
    case "3D000":
      return new DatabaseError(`${what} does not exist; make it with: createdb ${pathname.slice(1)}`);
    default:
      return new DatabaseError(`${what} cannot be opened: ${code ?? message}.`);
  }
}

function explainSqlite(path: string, error: unknown): DatabaseError {
  const { code } = error as NodeJS.ErrnoException;
  switch (code) {
    case "SQLITE_NOTADB":
    case "SQLITE_CORRUPT":
      return new DatabaseError(
        `The file ${path} is not a usable SQLite database; restore it from a backup or name another --database.`,
      );
    case "SQLITE_BUSY":
      return new DatabaseError(`The database ${path} is locked by another process; stop that process first.`);
    default:
      return new DatabaseError(
        `The database ${path} cannot be opened (${code ?? "unknown error"}); check that the directory exists and may be written to.`,
      );
  }
}
