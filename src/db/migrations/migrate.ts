/** Brings a database to the schema of this version: forward only, in one go, at boot. */
import { type Database, DatabaseError, type DatabasePart, type Queries } from "../queries/database.js";
import { hasTable } from "./has-table.js";
import { mempoolMigrations } from "./mempool-migrations.js";
import type { Migration } from "./migration.js";
import { migrations } from "./migrations.js";

/** The steps of a part of the database, and the table that says which of them it has had. */
interface Steps {
  readonly table: string;
  readonly migrations: readonly Migration[];
}

const mainSteps: Steps = { table: "schema_migrations", migrations };
const mempoolSteps: Steps = { table: "mempool_migrations", migrations: mempoolMigrations };

/**
 * Runs the migrations that the database has not had yet.
 *
 * @throws DatabaseError when the database was made by a newer version.
 */
export async function migrate(database: Database): Promise<void> {
  await migratePart(database, mainSteps);
  await migratePart(database.mempool, mempoolSteps);
}

async function migratePart(part: DatabasePart, steps: Steps): Promise<void> {
  await part.transaction(async (db) => {
    const { migrationLock } = db.dialect.schema;
    if (migrationLock !== undefined) {
      await db.run((sql) => sql.raw(migrationLock));
    }
    await db.run((sql) =>
      sql.raw(`CREATE TABLE IF NOT EXISTS ${steps.table} (version INTEGER PRIMARY KEY, name TEXT NOT NULL)`),
    );
    const version = await versionOf(db, steps);
    for (const [index, migration] of steps.migrations.entries()) {
      if (index >= version) {
        await db.runAll((sql) => migration.queries(sql, db.dialect.schema));
        await migration.fill?.(db);
        const { name } = migration;
        await db.run((sql) => sql(steps.table).insert({ version: index + 1, name }));
      }
    }
  });
}

/**
 * Checks that the database has this version's schema, for a node that must not change it.
 *
 * @throws DatabaseError when it has not.
 */
export async function checkSchema(database: Database): Promise<void> {
  if (!(await isUpToDate(database, mainSteps)) || !(await isUpToDate(database.mempool, mempoolSteps))) {
    throw new DatabaseError(notPrepared);
  }
}

/**
 * Checks that the part that holds the chain has this version's schema.
 *
 * @throws DatabaseError when it has not.
 */
export async function checkChainSchema(part: Pick<DatabasePart, "read">): Promise<void> {
  if (!(await isUpToDate(part, mainSteps))) {
    throw new DatabaseError(notPrepared);
  }
}

/** Whether any version has prepared a part of the database. */
export async function isPrepared(database: Database): Promise<boolean> {
  return (
    (await hasTable(database.read, mainSteps.table)) || (await hasTable(database.mempool.read, mempoolSteps.table))
  );
}

const notPrepared =
  "The database has not been prepared by this version of Gatehouse; start the node that writes to it first.";

async function isUpToDate({ read }: Pick<DatabasePart, "read">, steps: Steps): Promise<boolean> {
  return (await hasTable(read, steps.table)) && (await versionOf(read, steps)) >= steps.migrations.length;
}

async function versionOf(db: Queries, { table, migrations: known }: Steps): Promise<number> {
  const row = await db.first<{ version: number | null }>((sql) => sql(table).max({ version: "version" }));
  const version = row?.version ?? 0;
  if (version > known.length) {
    throw new DatabaseError(
      `The database was made by a newer version of Gatehouse (schema ${version}; this one knows ${known.length}); start that version.`,
    );
  }
  return version;
}
