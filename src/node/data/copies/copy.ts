/**
 * Copies a database into an empty one of any engine, table by table. One transaction stores both rows and progress, so
 * that an interrupted copy can resume.
 */
import { chainTables, type CopiedTable, mempoolTables } from "./copied-tables.js";
import { inChunks } from "../../../db/rows/chunks.js";
import { type Database, DatabaseError, type DatabasePart, type Queries } from "../../../db/queries/database.js";
import { withSnapshotReads } from "../../../db/queries/queries.js";
import { isPrepared, migrate } from "../../migrations/migrate.js";
import { keyOf, normalize, type Row, RowsDigest, scanRows } from "./row-scan.js";
import { startCopy, type CopyState, endCopy, isUnfinishedCopy, readStates, saveState } from "./copy-progress.js";

export interface CopyDeps {
  /** Source, with the schema of this version. */
  readonly source: Database;
  /** Target: empty, or an interrupted copy of the same source. */
  readonly target: Database;
  /** Identity of the source, which changes when the source is written to. */
  readonly sourceState: string;
  /** Called with the number of rows that are copied or compared, and the total. */
  readonly onProgress: (step: "copied" | "compared", done: number, total: number) => void;
  /** Called when all rows are copied; throws if the source has changed. */
  readonly confirm: () => Promise<void>;
}

export interface CopyOutcome {
  readonly tables: Readonly<Record<string, number>>;
  /** True if the copy resumed an earlier one. */
  readonly resumed: boolean;
}

/**
 * Copies a database. At the end it reads every row of the target and compares the digest with that of the source.
 *
 * @throws DatabaseError if the target is not empty, or if its rows differ from the source.
 */
export async function copyDatabase(deps: CopyDeps): Promise<CopyOutcome> {
  const { target, sourceState, confirm } = deps;
  const resumed = await isUnfinishedCopy(target.read);
  if (!resumed && (await isPrepared(target))) {
    throw new DatabaseError("The target is not empty; give an empty database.");
  }
  if (!(await startCopy(target, sourceState))) {
    throw new DatabaseError(
      "The target is the incomplete copy of another database, or of an earlier state of this one; empty the target, " +
        "and start again.",
    );
  }
  await migrate(target);
  const tables = await copySnapshot(deps);
  await confirm();
  await compare(deps, tables);
  for (const { name, sequence } of chainTables) {
    const { advanceSequence } = target.write.dialect;
    if (sequence !== undefined && advanceSequence !== undefined) {
      await target.write.run((sql) => sql.raw(advanceSequence(name, sequence)));
    }
  }
  await endCopy(target);
  return { tables: Object.fromEntries([...tables].map(([name, { rows }]) => [name, rows])), resumed };
}

type States = ReadonlyMap<string, CopyState>;

const namesOf = (tables: readonly CopiedTable[]): string[] => tables.map(({ name }) => name);

/**
 * Copies each part from one snapshot, the mempool first. A block is stored before its transactions leave the mempool,
 * so this order loses no transaction between the parts.
 */
async function copySnapshot({ source, target, onProgress }: CopyDeps): Promise<States> {
  const states = new Map<string, CopyState>();
  const pairs = [
    [source.mempool, target.mempool, mempoolTables],
    [source, target, chainTables],
  ] as const;
  let rows = 0;
  for (const [from, to, tables] of pairs) {
    rows += await countRows(from.read, tables);
    (await readStates(to, namesOf(tables))).forEach((state, name) => states.set(name, state));
  }
  for (const [from, to, tables] of pairs) {
    await withSnapshotReads(from.transaction)(async (db) => {
      for (const table of tables) {
        await copyTable(db, to, table, states.get(table.name)!, (state) => {
          states.set(table.name, state);
          const done = sumRows(states);
          // Rows may have been added since the count.
          onProgress("copied", done, Math.max(done, rows));
        });
      }
    });
  }
  return states;
}

function sumRows(states: States): number {
  return [...states.values()].reduce((sum, { rows }) => sum + rows, 0);
}

async function countRows(db: Queries, tables: readonly CopiedTable[]): Promise<number> {
  let sum = 0;
  for (const { name } of tables) {
    sum += (await db.first<{ rows: number }>((sql) => sql(name).count({ rows: "*" })))!.rows;
  }
  return sum;
}

async function copyTable(
  from: Queries,
  to: DatabasePart,
  table: CopiedTable,
  initial: CopyState,
  onState: (state: CopyState) => void,
): Promise<void> {
  let state = initial;
  if (state.isComplete) {
    return;
  }
  const digest = new RowsDigest(state.digest);
  async function store(rows: readonly Row[], next: CopyState): Promise<void> {
    await to.transaction(async (db) => {
      await saveState(db, table.name, state, next);
      if (state.after === null) {
        // Remove the rows that the migrations inserted.
        await db.run((sql) => sql(table.name).delete());
      }
      for (const chunk of inChunks(rows)) {
        await db.run((sql) => sql(table.name).insert(chunk));
      }
    });
    state = next;
    onState(state);
  }
  for await (const page of scanRows(from, table, state.after)) {
    const rows = page.map((row) => normalize(table, row));
    digest.add(rows);
    const after = keyOf(table, page.at(-1)!);
    await store(rows, { after, rows: state.rows + rows.length, digest: digest.text(), isComplete: false });
  }
  await store([], { ...state, isComplete: true });
}

/** Reads every row of the target, and compares the digests with those of the source. */
async function compare({ target, onProgress }: CopyDeps, states: States): Promise<void> {
  const total = sumRows(states);
  let done = 0;
  for (const [{ read }, tables] of [
    [target.mempool, mempoolTables],
    [target, chainTables],
  ] as const) {
    for (const table of tables) {
      const digest = new RowsDigest();
      let rows = 0;
      for await (const page of scanRows(read, table, null)) {
        digest.add(page.map((row) => normalize(table, row)));
        rows += page.length;
        onProgress("compared", (done += page.length), total);
      }
      const expected = states.get(table.name)!;
      if (rows !== expected.rows || digest.text() !== expected.digest) {
        throw new DatabaseError(
          `The table ${table.name} of the copy differs from the source (${rows} rows instead of ${expected.rows}); ` +
            "empty the target, and start again.",
        );
      }
    }
  }
}
