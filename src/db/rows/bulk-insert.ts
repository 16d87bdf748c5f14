/** Inserts many rows with one JSON text per statement, which costs a fraction of binding each value. */
import type { Queries } from "../queries/database.js";

/** Type of a column. Bytes are passed as hex digits. */
export type ColumnKind = "text" | "integer" | "boolean" | "bytes";

/** Value of a row. */
export type BulkValue = string | number | boolean | null;

/** Limits on the rows and the UTF-16 code units of one statement. Building its text blocks the event loop. */
const maxRows = 500;
const maxCharacters = 256 * 1024;

/**
 * Inserts rows and returns the number inserted. Skips rows with an existing key.
 *
 * @param columns by name, in the order of the values.
 */
export async function bulkInsert(
  db: Queries,
  table: string,
  columns: Readonly<Record<string, ColumnKind>>,
  rows: readonly (readonly BulkValue[])[],
): Promise<number> {
  const { list } = db.dialect;
  const values = Object.values(columns).map((kind, i) => bulkValue(db, kind, i));
  const statement = `INSERT INTO ${table} (${Object.keys(columns).join(", ")}) SELECT ${values.join(", ")}
    FROM ${list.table} WHERE true ON CONFLICT DO NOTHING RETURNING 1 AS inserted`;
  let inserted = 0;
  for (const portion of bulkPortions(rows)) {
    inserted += (await db.prepare(statement)(`[${portion.join(",")}]`)).length;
  }
  return inserted;
}

/** Returns the SQL expression for the value at position `i` of a row. */
export function bulkValue({ dialect }: Queries, kind: ColumnKind, i: number): string {
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
export function* bulkPortions(rows: Iterable<readonly BulkValue[]>): Generator<string[], void> {
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
