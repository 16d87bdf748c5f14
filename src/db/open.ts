import type { Database } from "./database.js";
import { openPostgresql } from "./postgresql.js";
import { openSqlite } from "./sqlite.js";

/**
 * Opens a database; an SQLite file is made if there is none.
 *
 * @param url `sqlite:` and a path, or a `postgres://` URL.
 * @throws DatabaseError
 */
export async function openDatabase(url: string): Promise<Database> {
  return url.startsWith("sqlite:") ? await openSqlite(url.slice("sqlite:".length)) : await openPostgresql(url);
}
