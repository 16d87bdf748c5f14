/** The rows that a document is kept in, each list as one column, as SQL. What they hold is checked by stored-program.ts. */
import type { Queries } from "../../db/queries/database.js";
import type { Dialect } from "../../db/queries/dialects.js";
import { joinParts, type Deps } from "../programs/stored-program.js";

/** The chunks of a field, as JSON. */
export function chunksOf({ jsonArray, jsonList }: Dialect, address: string, field: string): string {
  return jsonArray({
    item: jsonList(["c.field", "c.position", "c.items", "c.size_bytes", "c.text", "c.row_hash"]),
    from: `program_chunks c WHERE c.address = ${address} AND c.field = ${field}`,
    orderBy: "c.position",
  });
}

/** The columns of {@link Deps}, beside a document's own row, `d`. */
export function partsColumns(dialect: Dialect, address: string): string {
  return `d.data, d.row_hash, ${fieldsOf(dialect, address)} AS fields, ${allChunksOf(dialect, address)} AS chunks`;
}

/** The text of a document in parts, which has so many bytes. Throws DamageError. */
export async function readWhole(db: Queries, address: string, sizeBytes: number): Promise<string> {
  return (await joinParts(address, await readParts(db, address), sizeBytes)).text;
}

/** A document in parts. */
export async function readParts(db: Queries, address: string): Promise<Deps> {
  const [parts] = await db.rows<Deps>((sql) =>
    sql.raw(`SELECT ${partsColumns(db.dialect, "d.address")} FROM program_documents d WHERE d.address = ?`, [address]),
  );
  return parts!;
}

/** The fields of a document in parts, as JSON. */
function fieldsOf({ jsonArray, jsonList }: Dialect, address: string): string {
  const columns = ["f.position", "f.name_json", "f.type", "f.items", "f.size_bytes", "f.text_before", "f.value"];
  return jsonArray({
    item: jsonList([...columns, "f.row_hash"]),
    from: `program_fields f WHERE f.address = ${address}`,
    orderBy: "f.position",
  });
}

/** The chunks of all fields of a document, as JSON. */
function allChunksOf({ jsonArray, jsonList }: Dialect, address: string): string {
  return jsonArray({
    item: jsonList(["c.field", "c.position", "c.items", "c.size_bytes", "c.text", "c.row_hash"]),
    from: `program_chunks c WHERE c.address = ${address}`,
    orderBy: "c.field, c.position",
  });
}
