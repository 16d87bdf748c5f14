/** Brings a database to the schema of this version: forward only, in one go, at boot. */
import type { Knex } from "knex";
import { DatabaseError, type Database } from "./connect.js";
import { migrations } from "./migrations.js";

/**
 * Runs the migrations that the database has not had yet.
 *
 * @throws DatabaseError when the database was made by a newer version.
 */
export async function migrate({ engine, write }: Database): Promise<void> {
  await write.transaction(async (transaction) => {
    if (engine === "postgresql") {
      // Of several nodes that start at once, one migrates and the others wait.
      await transaction.raw("SELECT pg_advisory_xact_lock(5355053550)");
    }
    await transaction.raw(
      "CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL)",
    );
    const version = await versionOf(transaction);
    for (const [index, migration] of migrations.entries()) {
      if (index >= version) {
        await migration.up(transaction, engine);
        await transaction("schema_migrations").insert({ version: index + 1, name: migration.name });
      }
    }
  });
}

/**
 * Checks that the database has this version's schema, for a node that must not change it.
 *
 * @throws DatabaseError when it has not.
 */
export async function checkSchema({ read }: Database): Promise<void> {
  const version = (await read.schema.hasTable("schema_migrations")) ? await versionOf(read) : 0;
  if (version < migrations.length) {
    throw new DatabaseError(
      "The database has not been prepared by this version of Gatehouse; start the node that writes to it first.",
    );
  }
}

async function versionOf(database: Knex): Promise<number> {
  const [applied] = (await database("schema_migrations").max({ version: "version" })) as { version: number | null }[];
  const version = applied?.version ?? 0;
  if (version > migrations.length) {
    throw new DatabaseError(
      `The database was made by a newer version of Gatehouse (schema ${version}; this one knows ${migrations.length}); start that version.`,
    );
  }
  return version;
}
