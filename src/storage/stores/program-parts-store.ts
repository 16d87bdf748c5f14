/** SQL for the rows of a document, with each list as one JSON column. stored-program.ts checks the contents. */
import type { Queries } from "../../db/queries/database.js";
import type { Dialect } from "../../db/queries/dialects.js";
import { joinParts, type PartsRow } from "../programs/stored-program.js";

/** Returns SQL for the chunks of a field, or of all fields of a document, as a JSON array in their order. */
export function chunksOf({ jsonArray, jsonList }: Dialect, address: string, field?: string): string {
  return jsonArray({
    item: jsonList(["c.field", "c.position", "c.items", "c.size_bytes", "c.text", "c.row_hash"]),
    from: `program_chunks c WHERE c.address = ${address}${field === undefined ? "" : ` AND c.field = ${field}`}`,
    orderBy: "c.field, c.position",
  });
}

/** Returns SQL for the columns of {@link PartsRow}. The query must select from the document's own row, `d`. */
export function partsColumns(dialect: Dialect, address: string): string {
  return `d.data, d.row_hash, ${fieldsOf(dialect, address)} AS fields, ${chunksOf(dialect, address)} AS chunks`;
}

/**
 * Reads the text of a document in parts.
 *
 * @param sizeBytes expected size of the document.
 * @throws CorruptionError
 */
export async function readFull(db: Queries, address: string, sizeBytes: number): Promise<string> {
  return (await joinParts(address, await readParts(db, address), sizeBytes)).text;
}

/** Reads the rows of a document in parts, without checking them. */
export async function readParts(db: Queries, address: string): Promise<PartsRow> {
  const [parts] = await db.rows<PartsRow>((sql) =>
    sql.raw(`SELECT ${partsColumns(db.dialect, "d.address")} FROM program_documents d WHERE d.address = ?`, [address]),
  );
  return parts!;
}

/** Returns SQL for the fields of a document in parts, as a JSON array in their order. */
function fieldsOf({ jsonArray, jsonList }: Dialect, address: string): string {
  const columns = ["f.position", "f.name_json", "f.type", "f.items", "f.size_bytes", "f.text_before", "f.value"];
  return jsonArray({
    item: jsonList([...columns, "f.row_hash"]),
    from: `program_fields f WHERE f.address = ${address}`,
    orderBy: "f.position",
  });
}
