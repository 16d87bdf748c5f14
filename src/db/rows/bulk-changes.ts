/** Changes many rows at once: their values go to the engine as one JSON text for each statement. */
import { bulkPortions, type BulkValue, bulkValue, type ColumnKind } from "./bulk-insert.js";
import type { Queries } from "../queries/database.js";

/** Columns by their names, in the order of the values. */
type Columns = Readonly<Record<string, ColumnKind>>;
/** Values are asked for as they are stored, so that many rows need not be there twice. */
type Rows = Iterable<readonly BulkValue[]>;

/** Inserts rows in their order. Rejects where there is one with the key of one of them. */
export async function insertRows(db: Queries, table: string, columns: Columns, rows: Rows): Promise<void> {
  const { list } = db.dialect;
  await runPortions(
    db,
    `INSERT INTO ${table} (${Object.keys(columns).join(", ")}) SELECT ${valuesOf(db, columns).join(", ")}
      FROM ${list.table} ORDER BY k.key`,
    rows,
  );
}

/** Gives rows that there are other values. `key` stands before `columns` in the values of each row. */
export async function updateRows(
  db: Queries,
  table: string,
  { key, columns }: { readonly key: Columns; readonly columns: Columns },
  rows: Rows,
): Promise<void> {
  const names = Object.keys(key);
  const values = valuesOf(db, { ...key, ...columns });
  const changes = Object.keys(columns).map((name, i) => `${name} = ${values[names.length + i]}`);
  await runPortions(
    db,
    `UPDATE ${table} AS t SET ${changes.join(", ")} FROM ${db.dialect.list.table}
      WHERE ${names.map((name, i) => `t.${name} = ${values[i]}`).join(" AND ")}`,
    rows,
  );
}

/** Takes rows out, all of those that begin with one of these keys. */
export async function deleteRows(db: Queries, table: string, key: Columns, rows: Rows): Promise<void> {
  await runPortions(
    db,
    `DELETE FROM ${table} WHERE (${Object.keys(key).join(", ")}) IN
      (SELECT ${valuesOf(db, key).join(", ")} FROM ${db.dialect.list.table})`,
    rows,
  );
}

function valuesOf(db: Queries, columns: Columns): string[] {
  return Object.values(columns).map((kind, i) => bulkValue(db, kind, i));
}

async function runPortions(db: Queries, statement: string, rows: Rows): Promise<void> {
  const run = db.prepare(statement);
  let running: Promise<unknown> = Promise.resolve();
  for (const some of bulkPortions(rows)) {
    // The next portion is written here while the engine stores this one.
    await running;
    running = run(`[${some.join(",")}]`);
    running.catch(() => undefined);
  }
  await running;
}
