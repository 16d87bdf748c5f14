/**
 * Changes many rows with one statement. Values are sent to the engine as one JSON text per statement, which costs a
 * fraction of binding each value.
 */
import type { Queries } from "../queries/database.js";

/** Type of a column. Bytes are passed as hex digits. */
export type ColumnKind = "text" | "integer" | "boolean" | "bytes";

export type BulkValue = string | number | boolean | null;

/** Limits on the rows and the UTF-16 code units of one statement. Building its text blocks the event loop. */
const maxRows = 500;
const maxCharacters = 256 * 1024;

/** Columns by name, in the order of the values. */
type Columns = Readonly<Record<string, ColumnKind>>;
/** Rows as an iterable, so that a large set is not in memory twice. */
type Rows = Iterable<readonly BulkValue[]>;

/** Inserts rows in order. Rejects if a row with the same key exists. */
export async function insertRows(db: Queries, table: string, columns: Columns, rows: Rows): Promise<void> {
  await runPortions(db, `${insertFrom(db, table, columns)} ORDER BY k.key`, rows);
}

/** Inserts rows and returns the number inserted. Skips rows with an existing key. */
export async function bulkInsert(db: Queries, table: string, columns: Columns, rows: Rows): Promise<number> {
  const statement = `${insertFrom(db, table, columns)} WHERE true ON CONFLICT DO NOTHING RETURNING 1 AS inserted`;
  let inserted = 0;
  for (const portion of bulkPortions(rows)) {
    inserted += (await db.prepare(statement)(`[${portion.join(",")}]`)).length;
  }
  return inserted;
}

function insertFrom(db: Queries, table: string, columns: Columns): string {
  return `INSERT INTO ${table} (${Object.keys(columns).join(", ")}) SELECT ${valuesOf(db, columns).join(", ")}
    FROM ${db.dialect.list.table}`;
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

/** Returns the SQL expression for the value at position `i` of a row. */
function bulkValue({ dialect }: Queries, kind: ColumnKind, i: number): string {
  const value = `k.value ->> ${i}`;
  switch (kind) {
    case "text":
      return value;
    case "integer":
      return `CAST(${value} AS bigint)`;
    case "boolean":
      return `CAST(${value} AS boolean)`;
    case "bytes":
      return dialect.bytesOf(`(${value})`);
  }
}

/** Encodes rows as JSON texts, in portions that fit into one statement. */
function* bulkPortions(rows: Rows): Generator<string[], void> {
  let portion: string[] = [];
  let characters = 0;
  for (const row of rows) {
    const text = JSON.stringify(row);
    portion.push(text);
    characters += text.length;
    if (portion.length >= maxRows || characters >= maxCharacters) {
      yield portion;
      [portion, characters] = [[], 0];
    }
  }
  if (portion.length > 0) {
    yield portion;
  }
}
