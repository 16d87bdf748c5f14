import type { Connections } from "./connections.js";
import type { Database } from "./database.js";
import { findServers, openPostgresql, whatMayBeLost } from "./postgresql.js";
import type { Access } from "./postgresql-servers.js";
import { openSqlite } from "./sqlite.js";

/** What the mempool's file of SQLite is called after that of the chain. */
export const mempoolSuffix = "-mempool";

/**
 * Opens a database; files of SQLite are made if there are none. Its parts are two files of SQLite, and tables of one
 * database of PostgreSQL.
 *
 * @param url `sqlite:` and a path, or the `postgres://` URL of each of its servers, with commas between them.
 * @throws DatabaseError
 */
export async function openDatabase(url: string, access: Access = "write"): Promise<Database> {
  const servers = url.startsWith("sqlite:") ? undefined : await findServers(url, access);
  const open = (suffix: string): Promise<Connections> =>
    servers === undefined ? openSqlite(`${url.slice("sqlite:".length)}${suffix}`) : openPostgresql(servers);
  const main = await open("");
  try {
    const mempool = await open(mempoolSuffix);
    return {
      ...main,
      mempool,
      whatMayBeLost: async () => (servers === undefined ? [] : await whatMayBeLost(main.write, servers.count)),
      async close() {
        await Promise.all([main.close(), mempool.close()]);
      },
    };
  } catch (error) {
    await main.close();
    throw error;
  }
}
