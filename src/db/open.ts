import type { Connections } from "./connections.js";
import type { Database, ReadableDatabase } from "./database.js";
import { openPostgresql } from "./postgresql.js";
import { openSqlite, openSqliteForReading } from "./sqlite.js";

/** What the mempool's file of SQLite is called after that of the chain. */
export const mempoolSuffix = "-mempool";

/**
 * Opens a database; files of SQLite are made if there are none. Its parts are two files of SQLite, and tables of one
 * database of PostgreSQL.
 *
 * @param url `sqlite:` and a path, or a `postgres://` URL.
 * @throws DatabaseError
 */
export async function openDatabase(url: string): Promise<Database> {
  const open = (suffix: string): Promise<Connections> =>
    url.startsWith("sqlite:") ? openSqlite(`${url.slice("sqlite:".length)}${suffix}`) : openPostgresql(url);
  const main = await open("");
  try {
    const mempool = await open(mempoolSuffix);
    return {
      ...main,
      mempool,
      async close() {
        await Promise.all([main.close(), mempool.close()]);
      },
    };
  } catch (error) {
    await main.close();
    throw error;
  }
}

/**
 * Opens the part of a database that holds the chain, for reads alone.
 *
 * @throws DatabaseError
 */
export async function openForReading(url: string): Promise<ReadableDatabase> {
  return url.startsWith("sqlite:")
    ? await openSqliteForReading(url.slice("sqlite:".length))
    : await openPostgresql(url);
}
