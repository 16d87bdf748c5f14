/** The table that a database has while it is being copied into: how far that is, and that no node may use it. */
import { type Database, DatabaseError, type DatabasePart, type Queries } from "../queries/database.js";
import { hasTable } from "../migrations/has-table.js";
import type { EncodedKey } from "./row-scan.js";

const table = "unfinished_copy";
/** The row that says of what it is a copy. */
const sourceStep = "";

/** How far a table is. */
export interface CopyState {
  /** Key of the last row; null before the first. */
  readonly after: EncodedKey | null;
  readonly rows: number;
  /** Over the rows as they were read. */
  readonly digest: string;
  readonly isComplete: boolean;
}

const atBegin: CopyState = { after: null, rows: 0, digest: "0".repeat(64), isComplete: false };

/**
 * Refuses a database into which another one is being copied, or was until somebody ended that.
 *
 * @throws DatabaseError
 */
export async function refuseUnfinishedCopy(read: Queries): Promise<void> {
  if (await hasTable(read, table)) {
    throw new DatabaseError(
      "The database is a copy that is not finished; run gatehouse database copy once more, which goes on with it, or " +
        "name another --database.",
    );
  }
}

/**
 * Marks a database as unfinished; of one that is so already, finds out of what.
 *
 * @param source what names the source, and its state.
 * @returns false where it is the copy of something else.
 */
export async function beginCopy(target: Database, source: string): Promise<boolean> {
  return await target.transaction(async (db) => {
    await createTable(db);
    const row = await db.first<{ state: string }>((sql) => sql(table).where("step", sourceStep).select("state"));
    if (row === undefined) {
      await db.run((sql) => sql(table).insert({ step: sourceStep, state: source }));
    }
    return row === undefined || row.state === source;
  });
}

/** Whether something is being copied into a database. */
export async function isUnfinishedCopy(target: Database): Promise<boolean> {
  return await hasTable(target.read, table);
}

async function createTable(db: Queries): Promise<void> {
  await db.run((sql) =>
    sql.raw(`CREATE TABLE IF NOT EXISTS ${table} (step VARCHAR(100) PRIMARY KEY, state TEXT NOT NULL)`),
  );
}

/** How far tables of a part are; those that were not begun are at their beginning from now on. */
export async function readStates(part: DatabasePart, steps: readonly string[]): Promise<Map<string, CopyState>> {
  return await part.transaction(async (db) => {
    await createTable(db);
    const rows = await db.rows<{ step: string; state: string }>((sql) => sql(table).whereIn("step", [...steps]));
    const states = new Map(rows.map(({ step, state }) => [step, JSON.parse(state) as CopyState]));
    for (const step of steps) {
      if (!states.has(step)) {
        states.set(step, atBegin);
        await db.run((sql) => sql(table).insert({ step, state: JSON.stringify(atBegin) }));
      }
    }
    return states;
  });
}

/**
 * In the transaction of the rows: a table is further.
 *
 * @throws DatabaseError when somebody else has brought it further.
 */
export async function saveState(db: Queries, step: string, from: CopyState, to: CopyState): Promise<void> {
  const met = await db.run((sql) =>
    sql(table)
      .where({ step, state: JSON.stringify(from) })
      .update({ state: JSON.stringify(to) }),
  );
  if (met !== 1) {
    throw new DatabaseError("Another copy into this database is under way; let it end, or end it.");
  }
}

/** From now on a node may use it. */
export async function endCopy(target: Database): Promise<void> {
  const drop = (sql: Parameters<Parameters<Queries["run"]>[0]>[0]) => sql.schema.dropTableIfExists(table);
  await target.mempool.write.run(drop);
  await target.write.run(drop);
}
