/**
 * Table that exists while a database is being copied into. It stores the progress, and prevents a node from using the
 * copy.
 */
import { type Database, DatabaseError, type DatabasePart, type Queries } from "../../../db/queries/database.js";
import { hasTable } from "../../migrations/migrate.js";
import type { EncodedKey } from "./row-scan.js";

const table = "unfinished_copy";
/** Value of the column `step` in the row that identifies the source of the copy. In other rows it names a table. */
const sourceStep = "";

export interface CopyState {
  /** Key of the last copied row; null before the first. */
  readonly after: EncodedKey | null;
  readonly rows: number;
  /** Digest of the rows as they were read. */
  readonly digest: string;
  readonly isComplete: boolean;
}

const initialState: CopyState = { after: null, rows: 0, digest: "0".repeat(64), isComplete: false };

/** @throws DatabaseError if the database is an unfinished copy, in progress or interrupted. */
export async function rejectUnfinishedCopy(read: Queries): Promise<void> {
  if (await isUnfinishedCopy(read)) {
    throw new DatabaseError(
      "The database is an incomplete copy; run gatehouse database copy again, which resumes it, or give " +
        "another --database.",
    );
  }
}

/**
 * Marks a database as an unfinished copy of a source, or compares the source with an existing mark.
 *
 * @param source identity of the source and its state.
 * @returns false if the database is the copy of another source.
 */
export async function startCopy(target: Database, source: string): Promise<boolean> {
  return await target.transaction(async (db) => {
    await createTable(db);
    const row = await db.first<{ state: string }>((sql) => sql(table).where("step", sourceStep).select("state"));
    if (row === undefined) {
      await db.run((sql) => sql(table).insert({ step: sourceStep, state: source }));
    }
    return row === undefined || row.state === source;
  });
}

export async function isUnfinishedCopy(read: Queries): Promise<boolean> {
  return await hasTable(read, table);
}

async function createTable(db: Queries): Promise<void> {
  await db.run((sql) =>
    sql.raw(`CREATE TABLE IF NOT EXISTS ${table} (step VARCHAR(100) PRIMARY KEY, state TEXT NOT NULL)`),
  );
}

/** Reads the progress of the tables of a part. Creates an initial state for tables that have none. */
export async function readStates(part: DatabasePart, steps: readonly string[]): Promise<Map<string, CopyState>> {
  return await part.transaction(async (db) => {
    await createTable(db);
    const rows = await db.rows<{ step: string; state: string }>((sql) => sql(table).whereIn("step", [...steps]));
    const states = new Map(rows.map(({ step, state }) => [step, JSON.parse(state) as CopyState]));
    for (const step of steps) {
      if (!states.has(step)) {
        states.set(step, initialState);
        await db.run((sql) => sql(table).insert({ step, state: JSON.stringify(initialState) }));
      }
    }
    return states;
  });
}

/** @throws DatabaseError if another process advanced the copy. */
export async function saveState(db: Queries, step: string, from: CopyState, to: CopyState): Promise<void> {
  const updated = await db.run((sql) =>
    sql(table)
      .where({ step, state: JSON.stringify(from) })
      .update({ state: JSON.stringify(to) }),
  );
  if (updated !== 1) {
    throw new DatabaseError("Another copy into this database is in progress; wait until it finishes, or stop it.");
  }
}

/** Ends the copy, so that a node may use the database. */
export async function endCopy(target: Database): Promise<void> {
  for (const { write } of [target.mempool, target]) {
    await write.run((sql) => sql.schema.dropTableIfExists(table));
  }
}
