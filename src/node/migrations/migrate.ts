/** Brings a database to the schema of this version at boot: forward only, in one transaction. */
import {
  type Database,
  DatabaseError,
  type DatabasePart,
  type Queries,
  type Query,
} from "../../db/queries/database.js";
import { firstStep, mempoolMigrations, type Migration, migrations } from "./migrations.js";

/** Steps of a part of the database, and the table that records those that ran. */
interface Steps {
  readonly table: string;
  /** Number of the first step. */
  readonly first: number;
  readonly migrations: readonly Migration[];
}

const mainSteps: Steps = { table: "schema_migrations", first: firstStep, migrations };
const mempoolSteps: Steps = { table: "mempool_migrations", first: 1, migrations: mempoolMigrations };

/**
 * Runs the steps that the database lacks.
 *
 * @throws DatabaseError if the database is of a newer version, or of an older format.
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
    if (version > 0 && version < steps.first) {
      throw new DatabaseError(olderFormat);
    }
    for (const [index, { name, convert, queries }] of steps.migrations.entries()) {
      const number = steps.first + index;
      if (number > version) {
        await convert?.(db);
        await db.runAll((sql) => queries(sql, db.dialect.schema));
        await db.run((sql) => sql(steps.table).insert({ version: number, name }));
      }
    }
  });
}

/** @throws DatabaseError if the database has another schema, for a node that must not change it. */
export async function checkSchema(database: Database): Promise<void> {
  if (!(await isUpToDate(database, mainSteps)) || !(await isUpToDate(database.mempool, mempoolSteps))) {
    throw new DatabaseError(notPrepared);
  }
}

/** @throws DatabaseError if the part that holds the chain has another schema. */
export async function checkChainSchema(part: Pick<DatabasePart, "read">): Promise<void> {
  if (!(await isUpToDate(part, mainSteps))) {
    throw new DatabaseError(notPrepared);
  }
}

/** Returns true if any version has prepared a part of the database. */
export async function isPrepared(database: Database): Promise<boolean> {
  return (
    (await hasTable(database.read, mainSteps.table)) || (await hasTable(database.mempool.read, mempoolSteps.table))
  );
}

const olderFormat =
  "The database holds a chain of an older format, which this version cannot continue; start with another --data-dir or " +
  "--database, and keep this one for the version that wrote it.";

const notPrepared =
  "The database has not been prepared by this version of Gatehouse; start the node that writes to it first.";

export async function hasTable(db: Queries, name: string): Promise<boolean> {
  // Typed as a promise, but a query like the others.
  return (await db.run((sql) => sql.schema.hasTable(name) as unknown as Query)) === true;
}

async function isUpToDate({ read }: Pick<DatabasePart, "read">, steps: Steps): Promise<boolean> {
  return (await hasTable(read, steps.table)) && (await versionOf(read, steps)) === lastOf(steps);
}

const lastOf = ({ first, migrations: { length } }: Steps): number => first + length - 1;

async function versionOf(db: Queries, steps: Steps): Promise<number> {
  const row = await db.first<{ version: number | null }>((sql) => sql(steps.table).max({ version: "version" }));
  const version = row?.version ?? 0;
  if (version > lastOf(steps)) {
    throw new DatabaseError(
      `The database was created by a newer version of Gatehouse (schema ${version}; this version supports up to ${lastOf(steps)}); start that version.`,
    );
  }
  return version;
}
