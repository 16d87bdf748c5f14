import knex, { type Knex } from "knex";
import type { Teardown } from "./teardown.js";

/** A node's database file, opened as another program would: not by the node's own code. It is closed after the test. */
export function openSqlite(t: Teardown, file: string): Knex {
  const database = knex({ client: "sqlite3", connection: { filename: file }, useNullAsDefault: true });
  t.teardown(() => database.destroy());
  return database;
}
