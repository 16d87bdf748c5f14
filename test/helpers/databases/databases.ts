/** Both database engines for tests: SQLite, and PostgreSQL from its npm package if it can start. */
import { join } from "node:path";
import type { Database } from "../../../src/db/queries/database.js";
import type { Engine } from "../../../src/db/queries/dialects.js";
import { openDatabase } from "../../../src/db/open.js";
import { migrate } from "../../../src/node/migrations/migrate.js";
import { sharedPostgres } from "./postgres-server.js";
import { type Teardown, temporaryDirectory } from "../nodes/teardown.js";
import { testUnless } from "../nodes/when.js";
import knex, { type Knex } from "knex";
import type { Database as SqliteConnection } from "sqlite3";

/** Prepares the engines. Call it before the first test is declared. */
export async function prepareEngines() {
  const postgres = await sharedPostgres();
  if (typeof postgres === "string") {
    testUnless(postgres)("the same over PostgreSQL", (t) => t.fail());
  }
  const createFile = async (t: Teardown): Promise<string> => `sqlite:${join(await temporaryDirectory(t), "a.sqlite")}`;
  return {
    names: (typeof postgres === "string" ? ["sqlite"] : ["sqlite", "postgresql"]) as readonly Engine[],
    /** Creates an empty database, and resolves to its URL. It is removed after the test. */
    async createUrl(t: Teardown, engine: Engine): Promise<string> {
      if (engine === "sqlite" || typeof postgres === "string") {
        return await createFile(t);
      }
      const url = await postgres.createDatabase();
      t.teardown(() => postgres.dropDatabase(url));
      return url;
    },
    /** Creates a migrated database. */
    async open(t: Teardown, engine: Engine): Promise<Database> {
      const isFile = engine === "sqlite" || typeof postgres === "string";
      const database = await openDatabase(isFile ? await createFile(t) : await postgres.createSchema());
      t.teardown(() => database.close());
      await migrate(database);
      return database;
    },
  };
}

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
