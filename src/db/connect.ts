/**
 * Opens the database. The only file that knows which engine stands behind it: sqlite3 is archived upstream, and what
 * replaces it one day changes nothing else.
 */
import knex, { type Knex } from "knex";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { markDatabaseTrouble } from "../errors.js";
import type { Database as SqliteConnection } from "sqlite3";

/** An open database. */
export interface Database {
  /** For reads: several connections, none of which waits for the writer. */
  readonly read: Knex;
  /** For writes: one connection, so that writers queue here and not inside the engine. */
  readonly write: Knex;
  /** Closes all connections. */
  close(): Promise<void>;
}

/** The database cannot be used; the message is one sentence for the operator. */
export class DatabaseError extends Error {
  override readonly name = "DatabaseError";
}

const readers = 3;
/** How long a query waits for a free connection: longer than the engine waits for a lock, so that a lock is told of. */
const acquireWithinMs = 2_000;

const pragmas = [
  "PRAGMA busy_timeout = 1500",
  "PRAGMA journal_mode = WAL",
  "PRAGMA synchronous = NORMAL",
  "PRAGMA foreign_keys = ON",
  "PRAGMA mmap_size = 268435456",
];

/**
 * Opens a database, made if there is none.
 *
 * @param url `sqlite:` and a path.
 * @throws DatabaseError
 */
export async function openDatabase(url: string): Promise<Database> {
  const path = url.replace(/^sqlite:/, "");
  await mkdir(dirname(path), { recursive: true, mode: 0o700 }).catch((error: unknown) => {
    throw explain(path, error);
  });
  const write = connect(path, 1);
  const read = connect(path, readers);
  const database = {
    read,
    write,
    close: async () => {
      await Promise.all([read.destroy(), write.destroy()]);
    },
  };
  try {
    await write.raw("SELECT 1 FROM sqlite_master LIMIT 1");
  } catch (error) {
    await database.close();
    throw explain(path, error);
  }
  return database;
}

/** What the engine says when the database is away, locked, full or damaged, and not the query wrong. */
const troubleCodes = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CANTOPEN|READONLY|CORRUPT|NOTADB)/;

function connect(filename: string, connections: number): Knex {
  const database = open(filename, connections);
  database.on("query-error", (error: NodeJS.ErrnoException) => {
    if (troubleCodes.test(error.code ?? "")) {
      markDatabaseTrouble(error);
    }
  });
  return database;
}

function open(filename: string, connections: number): Knex {
  return knex({
    client: "sqlite3",
    connection: { filename },
    useNullAsDefault: true,
    // Everything it would print is thrown as well.
    log: { debug: ignore, warn: ignore, error: ignore, deprecate: ignore },
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
  });
}

function ignore(): void {
  // Nothing to do.
}

function explain(path: string, error: unknown): DatabaseError {
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
