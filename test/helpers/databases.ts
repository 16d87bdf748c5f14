/** Both database engines for the same tests: SQLite always, PostgreSQL from its npm package where it can start. */
import { join } from "node:path";
import type { Database } from "../../src/db/database.js";
import type { Engine } from "../../src/db/dialects.js";
import { openDatabase } from "../../src/db/open.js";
import { migrate } from "../../src/db/migrate.js";
import { startPostgres } from "./postgres-server.js";
import { type Teardown, temporaryDirectory } from "./teardown.js";
import { testUnless } from "./when.js";

/** What a test file needs to run on both engines. */
export interface Engines {
  readonly names: readonly Engine[];
  /** URL of a new, empty database, which is gone after the test. */
  createUrl(t: Teardown, engine: Engine): Promise<string>;
  /** A new, migrated database. */
  open(t: Teardown, engine: Engine): Promise<Database>;
  /** For `test.after.always`. */
  stop(): Promise<void>;
}

/** Call it before the first test is declared. */
export async function prepareEngines(): Promise<Engines> {
  const postgres = await startPostgres();
  if (typeof postgres === "string") {
    testUnless(postgres)("the same over PostgreSQL", (t) => t.fail());
  }
  const createUrl = async (t: Teardown, onServer: "createDatabase" | "createSchema", engine: Engine): Promise<string> =>
    engine === "postgresql" && typeof postgres !== "string"
      ? await postgres[onServer]()
      : `sqlite:${join(await temporaryDirectory(t), "a.sqlite")}`;
  return {
    names: typeof postgres === "string" ? ["sqlite"] : ["sqlite", "postgresql"],
    createUrl: (t, engine) => createUrl(t, "createDatabase", engine),
    async open(t, engine) {
      const database = await openDatabase(await createUrl(t, "createSchema", engine));
      t.teardown(() => database.close());
      await migrate(database);
      return database;
    },
    async stop() {
      if (typeof postgres !== "string") {
        await postgres.remove();
      }
    },
  };
}
