import knex, { type Knex } from "knex";
import type { Database as SqliteConnection } from "sqlite3";
import type { Teardown } from "../nodes/teardown.js";

/** Opens the database file of a node without code of the node. It is closed after the test. */
export function openSqlite(t: Teardown, file: string): Knex {
  const database = knex({
    client: "sqlite3",
    connection: { filename: file },
    useNullAsDefault: true,
    // The node may be writing, and the machine may be busy.
    pool: {
      afterCreate: (connection: SqliteConnection, done: (error: null, connection: SqliteConnection) => void) => {
        connection.configure("busyTimeout", 30_000);
        done(null, connection);
      },
    },
  });
  t.teardown(() => database.destroy());
  return database;
}
