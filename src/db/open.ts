import { existsSync } from "node:fs";
import type { ConnectionPools } from "./queries/connection-pools.js";
import { type Database, DatabaseError, type ReadableDatabase } from "./queries/database.js";
import { explainPostgresql, findServers, nameServers, openPostgresql, whatMayBeLost } from "./postgresql/postgresql.js";
import type { Access } from "./postgresql/postgresql-servers.js";
import { explainSqlite, openSqlite, openSqliteForReading } from "./sqlite/sqlite.js";
import { withSnapshotReads } from "./queries/snapshot-reads.js";
import { type OpenFiles, watchFiles } from "./sqlite/sqlite-files.js";

/** What the mempool's file of SQLite is called after that of the chain. */
export const mempoolSuffix = "-mempool";

/** How the name of a file of SQLite begins. */
const filePrefix = "sqlite:";

/** Path of the file of SQLite that a URL names; undefined where it names servers. */
export function fileOf(url: string): string | undefined {
  return url.startsWith(filePrefix) ? url.slice(filePrefix.length) : undefined;
}

/** The name of a URL's engine, for people. */
export function engineNameOf(url: string): "SQLite" | "PostgreSQL" {
  return fileOf(url) === undefined ? "PostgreSQL" : "SQLite";
}

/** Whether a URL names a file of SQLite that is not there; of a server that is not to be told without it. */
export function isMissing(url: string): boolean {
  const path = fileOf(url);
  return path !== undefined && !existsSync(path);
}

/** A URL as it may be told: without a password. */
export function nameDatabase(url: string): string {
  return fileOf(url) ?? nameServers(url);
}

/**
 * The trouble of a database, as a sentence for the operator.
 *
 * @param error what a query or an attempt to open the database threw.
 */
export function explainTrouble(url: string, error: unknown): DatabaseError {
  if (error instanceof DatabaseError) {
    return error;
  }
  const path = fileOf(url);
  return path === undefined ? explainPostgresql(url, error) : explainSqlite(path, error);
}

/**
 * Opens a database; files of SQLite are made if there are none. Its parts are two files of SQLite, and tables of one
 * database of PostgreSQL.
 *
 * @param url `sqlite:` and a path, or the `postgres://` URL of each of its servers, with commas between them.
 * @throws DatabaseError
 */
export async function openDatabase(url: string, access: Access = "write"): Promise<Database> {
  return await openParts(url, access, openSqlite);
}

async function openParts(
  url: string,
  access: Access,
  openFile: (path: string) => Promise<ConnectionPools>,
): Promise<Database> {
  const path = fileOf(url);
  const servers = path === undefined ? await findServers(url, access) : undefined;
  const open = (suffix: string): Promise<ConnectionPools> =>
    servers === undefined ? openFile(`${path}${suffix}`) : openPostgresql(servers);
  const main = await open("");
  try {
    const mempool = await open(mempoolSuffix);
    const files: OpenFiles | undefined =
      path === undefined ? undefined : await watchFiles([path, `${path}${mempoolSuffix}`]);
    return {
      ...main,
      mempool,
      files,
      whatMayBeLost: async () => (servers === undefined ? [] : await whatMayBeLost(main.write, servers.count)),
      async close() {
        await Promise.all([main.close(), mempool.close()]);
        // Last of all: until then nobody else may write.
        await files?.close();
      },
    };
  } catch (error) {
    await main.close();
    throw error;
  }
}

/** Opens a database for some work, and closes it however that ends. */
export async function withDatabase<T>(url: string, work: (database: Database) => Promise<T>): Promise<T> {
  return await closeAfter(await openDatabase(url), work);
}

/**
 * The same for work that only reads all of it: files of SQLite stay as they are, down to their bytes, as they may be those
 * of a backup. Of servers it is the primary: a standby may be behind.
 */
export async function withSource<T>(url: string, work: (database: Database) => Promise<T>): Promise<T> {
  return await closeAfter(await openParts(url, "write", openSqliteForReading), work);
}

async function closeAfter<T>(database: Database, work: (database: Database) => Promise<T>): Promise<T> {
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

/**
 * Opens the part of a database that holds the chain, for reads alone.
 *
 * @throws DatabaseError
 */
export async function openForReading(url: string): Promise<ReadableDatabase> {
  const path = fileOf(url);
  const servers = path === undefined ? await findServers(url, "read") : undefined;
  const opened = servers === undefined ? await openSqliteForReading(path!) : await openPostgresql(servers);
  return {
    ...opened,
    ofOneMoment: withSnapshotReads(opened.transaction),
    whatMayBeLost: async () => (servers === undefined ? [] : await whatMayBeLost(opened.read, servers.count)),
  };
}
