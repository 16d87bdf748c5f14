/** Changes many rows with one statement. Values are sent to the engine as one JSON text per statement. */
import { bulkPortions, type BulkValue, bulkValue, type ColumnKind } from "./bulk-insert.js";
import type { Queries } from "../queries/database.js";

/** Columns by name, in the order of the values. */
type Columns = Readonly<Record<string, ColumnKind>>;
/** Rows as an iterable, so that a large set is not in memory twice. */
type Rows = Iterable<readonly BulkValue[]>;

/** Inserts rows in order. Rejects if a row with the same key exists. */
export async function insertRows(db: Queries, table: string, columns: Columns, rows: Rows): Promise<void> {
  const { list } = db.dialect;
  await runPortions(
    db,
    `INSERT INTO ${table} (${Object.keys(columns).join(", ")}) SELECT ${valuesOf(db, columns).join(", ")}
      FROM ${list.table} ORDER BY k.key`,
    rows,
  );
}

/** Updates existing rows. In the values of each row, `key` comes before `columns`. */
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

/** Deletes the rows that match these key columns, which may be a part of the primary key. */
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
  for (const portion of bulkPortions(rows)) {
    // Build the text of the next portion while the engine stores this one.
    await running;
    running = run(`[${portion.join(",")}]`);
    // Prevents an unhandled rejection; the next `await` throws the error.
    running.catch(() => undefined);
  }
  await running;
}
