/** Puts many rows into a table at once: as one JSON text for each statement, which costs a fraction of a value each. */
import type { Queries } from "../queries/database.js";

/** What a column holds. Bytes are given as hex digits. */
export type ColumnKind = "text" | "integer" | "boolean" | "bytes";

/** A value of a row. */
export type BulkValue = string | number | boolean | null;

/** Bounds of one statement: making its text keeps everything else waiting. */
const mostRows = 500;
const mostCharacters = 256 * 1024;

/**
 * Inserts rows, and gives how many: those whose key is there already are left out.
 *
 * @param columns by their names, in the order of the values.
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
  for (const some of bulkPortions(rows)) {
    inserted += (await db.prepare(statement)(`[${some.join(",")}]`)).length;
  }
  return inserted;
}

/** The value of a column, the one at this place in a row, as SQL. */
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

/** Rows as JSON texts, as many as one statement may have. */
export function* bulkPortions(rows: Iterable<readonly BulkValue[]>): Generator<string[], void> {
  let portion: string[] = [];
  let characters = 0;
  for (const row of rows) {
    const text = JSON.stringify(row);
    portion.push(text);
    characters += text.length;
    if (portion.length >= mostRows || characters >= mostCharacters) {
      yield portion;
      [portion, characters] = [[], 0];
    }
  }
  if (portion.length > 0) {
    yield portion;
  }
}
