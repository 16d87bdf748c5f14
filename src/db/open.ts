/** Opens databases by their URLs: a pair of SQLite files, or PostgreSQL servers. */
import { existsSync } from "node:fs";
import type { ConnectionPools } from "./queries/connection-pools.js";
import { type Database, DatabaseError, type ReadableDatabase } from "./queries/database.js";
import {
  explainPostgresql,
  loadServers,
  describeServers,
  openPostgresql,
  durabilityRisks,
} from "./postgresql/postgresql.js";
import type { Access } from "./postgresql/postgresql-servers.js";
import { explainSqlite, type OpenFiles, openSqlite, openSqliteForReading, trackFiles } from "./sqlite/sqlite.js";
import { withSnapshotReads } from "./queries/queries.js";

export type { Access };

/** Suffix of the SQLite file of the mempool, after the path of the file of the chain. */
export const mempoolSuffix = "-mempool";

const filePrefix = "sqlite:";

export function fileOf(url: string): string | undefined {
  return url.startsWith(filePrefix) ? url.slice(filePrefix.length) : undefined;
}

export function engineNameOf(url: string): "SQLite" | "PostgreSQL" {
  return fileOf(url) === undefined ? "PostgreSQL" : "SQLite";
}

/**
 * Returns true if a URL names a SQLite file that does not exist. Returns false for servers, which only a connection can
 * check.
 */
export function isMissing(url: string): boolean {
  const path = fileOf(url);
  return path !== undefined && !existsSync(path);
}

/** Returns the path of a SQLite file, or the hosts and database of servers without passwords, for messages. */
export function describeDatabase(url: string): string {
  return fileOf(url) ?? describeServers(url);
}

/** Returns the error for the operator for a failed query or a failed attempt to open the database. */
export function explainError(url: string, error: unknown): DatabaseError {
  if (error instanceof DatabaseError) {
    return error;
  }
  const path = fileOf(url);
  return path === undefined ? explainPostgresql(url, error) : explainSqlite(path, error);
}

/**
 * Opens a database, and creates SQLite files that do not exist. Its parts are two SQLite files, or tables of one
 * PostgreSQL database.
 *
 * @param url `sqlite:` and a path, or the `postgres://` URLs of the servers, separated by commas.
 * @throws DatabaseError
 */
export async function openDatabase(
  url: string,
  access: Access = "write",
  openFile: (path: string) => Promise<ConnectionPools> = openSqlite,
): Promise<Database> {
  const path = fileOf(url);
  const servers = path === undefined ? await loadServers(url, access) : undefined;
  const open = (suffix: string): Promise<ConnectionPools> =>
    servers === undefined ? openFile(`${path}${suffix}`) : openPostgresql(servers);
  const main = await open("");
  try {
    const mempool = await open(mempoolSuffix);
    const files: OpenFiles | undefined =
      path === undefined ? undefined : await trackFiles([path, `${path}${mempoolSuffix}`]);
    return {
      ...main,
      mempool,
      files,
      durabilityRisks: async () => (servers === undefined ? [] : await durabilityRisks(main.write, servers.count)),
      allowStandbyReads: (rules) => servers?.allowStandbyReads(rules),
      async close() {
        await Promise.all([main.close(), mempool.close()]);
        // Release the lock last, so that no other process writes before the connections are closed.
        await files?.close();
      },
    };
  } catch (error) {
    await main.close();
    throw error;
  }
}

export async function withDatabase<T>(url: string, work: (database: Database) => Promise<T>): Promise<T> {
  return await closeAfter(await openDatabase(url), work);
}

/**
 * Opens a database for work that reads all of it. SQLite files may be a backup, so they stay unchanged byte for byte.
 * With servers, connects to the primary, because a standby may lag.
 */
export async function withSource<T>(url: string, work: (database: Database) => Promise<T>): Promise<T> {
  return await closeAfter(await openDatabase(url, "write", openSqliteForReading), work);
}

async function closeAfter<T>(database: Database, work: (database: Database) => Promise<T>): Promise<T> {
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

/** Opens the part of a database that holds the chain, for reads only. */
export async function openForReading(url: string): Promise<ReadableDatabase> {
  const path = fileOf(url);
  const servers = path === undefined ? await loadServers(url, "read") : undefined;
  const opened = servers === undefined ? await openSqliteForReading(path!) : await openPostgresql(servers);
  return {
    ...opened,
    withSnapshot: withSnapshotReads(opened.transaction),
    durabilityRisks: async () => (servers === undefined ? [] : await durabilityRisks(opened.read, servers.count)),
  };
}
