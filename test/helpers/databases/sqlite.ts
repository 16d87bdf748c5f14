import knex, { type Knex } from "knex";
import type { Database as SqliteConnection } from "sqlite3";
import type { Teardown } from "../nodes/teardown.js";

/** A node's database file, opened as another program would: not by the node's own code. It is closed after the test. */
export function openSqlite(t: Teardown, file: string): Knex {
  const database = knex({
    client: "sqlite3",
    connection: { filename: file },
    useNullAsDefault: true,
    // The node may be writing, on a machine that has much else to do.
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
