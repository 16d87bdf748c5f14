/** Opens PostgreSQL: one node that writes, and many that read, over one database. */
import { acquireWithinMs, type Connections, openConnections } from "./connections.js";
import { DatabaseError } from "./database.js";
import { dialects } from "./dialects.js";

const readers = 8;

/**
 * Opens a database of a server, for one part of what a node stores.
 *
 * @throws DatabaseError
 */
export async function openPostgresql(url: string): Promise<Connections> {
  const { default: pg } = await import("pg");
  // 64-bit integers come as texts by default; every one that is stored fits into a number.
  pg.types.setTypeParser(pg.types.builtins.INT8, Number);
  return await openConnections({
    words: {
      dialect: dialects.postgresql,
      troubleOf(code) {
        // data_corrupted, index_corrupted.
        if (code === "XX001" || code === "XX002") {
          return "damaged";
        }
        // Locks that were not to be had, and transactions that met in a way that only one of them could go on.
        if (/^(55P03|40001|40P01)$/.test(code ?? "")) {
          return "locked";
        }
        // Connection, resources, shutdown, or no word of the server at all; not a query that is wrong.
        return code === undefined || /^(08|53|57|58|E[A-Z])/.test(code) ? "unavailable" : undefined;
      },
    },
    settings: {
      client: "pg",
      connection: {
        connectionString: url,
        application_name: "gatehouse",
        connectionTimeoutMillis: acquireWithinMs,
      },
      pool: { idleTimeoutMillis: 60_000 },
    },
    readers,
    question: "SELECT 1",
    explain: (error) => explain(url, error),
  });
}

function explain(url: string, error: unknown): DatabaseError {
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
