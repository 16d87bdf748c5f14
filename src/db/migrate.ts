/** Brings a database to the schema of this version: forward only, in one go, at boot. */
import { type Database, DatabaseError, type Queries, type Query } from "./database.js";
import { migrations } from "./migrations.js";

/**
 * Runs the migrations that the database has not had yet.
 *
 * @throws DatabaseError when the database was made by a newer version.
 */
export async function migrate(database: Database): Promise<void> {
  await database.transaction(async (db) => {
    const { migrationLock } = db.dialect.schema;
    if (migrationLock !== undefined) {
      await db.run((sql) => sql.raw(migrationLock));
    }
    await db.run((sql) =>
      sql.raw("CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL)"),
    );
    const version = await versionOf(db);
    for (const [index, migration] of migrations.entries()) {
      if (index >= version) {
        await db.runAll((sql) => migration.queries(sql, db.dialect.schema));
        const { name } = migration;
        await db.run((sql) => sql("schema_migrations").insert({ version: index + 1, name }));
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
  // It says that it is a promise; it is a query like the others.
  const isThere = await read.run((sql) => sql.schema.hasTable("schema_migrations") as unknown as Query);
  if (isThere !== true || (await versionOf(read)) < migrations.length) {
    throw new DatabaseError(
      "The database has not been prepared by this version of Gatehouse; start the node that writes to it first.",
    );
  }
}

async function versionOf(db: Queries): Promise<number> {
  const row = await db.first<{ version: number | null }>((sql) => sql("schema_migrations").max({ version: "version" }));
  const version = row?.version ?? 0;
  if (version > migrations.length) {
    throw new DatabaseError(
      `The database was made by a newer version of Gatehouse (schema ${version}; this one knows ${migrations.length}); start that version.`,
    );
  }
  return version;
}
