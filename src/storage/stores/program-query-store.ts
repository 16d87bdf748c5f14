/** Queries for single programs. Each returns everything that one read needs as one row. The callers check the rows. */
import { type BatchOptions, prepareBatch } from "../../db/rows/batch.js";
import { FairLimit } from "../../base/async/fair-limit.js";
import type { Flow } from "../../base/async/fair-scheduler.js";
import type { Queries } from "../../db/queries/database.js";
import type { Dialect } from "../../db/queries/dialects.js";
import { joinParts, type PartsRow, portionRows, programColumns, type TextRow } from "../programs/stored-program.js";

/** Program row packed into one column. Drivers convert one long text faster than many short columns. */
export interface PackedRow {
  /** Index of the row's key among the keys of the batch. */
  readonly slot: number;
  /** JSON text of a {@link ProgramRow}. */
  readonly record: string;
}

export interface PackedField extends PackedRow {
  /** JSON text of a {@link FieldRecord}; its values are null if there is no such field. */
  readonly field: string;
}

/** Program with a field and the chunk of the field that holds an item, or the last chunk if none holds it. */
export interface PackedItem extends PackedField {
  /** JSON text of a {@link ChunkRecord}; its values are null if there is no chunk. */
  readonly chunk: string;
  readonly first_item: number;
  readonly all_items: number | null;
}

const fieldColumns = ["address", "position", "name_json", "type", "items", "size_bytes", "text_before", "value"];
const chunkColumns = ["address", "field", "position", "items", "size_bytes", "text"];

const columnsOf = (table: string, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.map((name) => [name, `${table}.${name}`]));

interface RecordQuery {
  readonly columns: string;
  /** SQL joins for the additional columns; `p` is the program's row. */
  readonly join: string;
  readonly withDeleted?: boolean;
  readonly batch?: BatchOptions;
}

/**
 * Batch options for results of many rows, which take longer and can have 1 MiB. A queue of their own keeps them
 * from delaying reads of small documents.
 */
const large: BatchOptions = { queue: "list", maxKeys: 16 };

/** Prepares a query for a program and additional columns. The key is a list whose first item is the address. */
function prepareRecord<Extra>(db: Queries, { columns, join, withDeleted = false, batch }: RecordQuery) {
  return prepareBatch<PackedRow & Extra>(
    db,
    ({ table, slot }) =>
      `SELECT ${slot} AS slot, ${db.dialect.jsonObject(columnsOf("p", programColumns))} AS record, ${columns}
        FROM ${table} JOIN programs p ON p.address = k.value ->> 0 ${join} ${withDeleted ? "" : "WHERE NOT p.deleted"}`,
    batch,
  );
}

const text = { columns: "d.data, d.row_hash", join: "LEFT JOIN program_documents d ON d.address = p.address" };

/** Prepares the query of a program, deleted or not, with the text of its document. The key is a list of the address. */
export function prepareAnyProgram(db: Queries): (key: readonly [string]) => Promise<(PackedRow & TextRow) | undefined> {
  return prepareRecord<TextRow>(db, { ...text, withDeleted: true });
}

/**
 * Prepares the queries. Each key is a list: the address, then the field name as JSON, then the item's index, as far as
 * the query uses them.
 */
export function prepareProgramQueries(db: Queries) {
  const { jsonObject } = db.dialect;
  const withData = prepareRecord<TextRow>(db, text);
  const withParts = prepareRecord<PartsRow>(db, {
    columns: partsColumns(db.dialect, "p.address"),
    join: text.join,
    batch: large,
  });
  const fields = "LEFT JOIN program_fields f ON f.address = p.address AND f.name_json = k.value ->> 1";
  const field = jsonObject(columnsOf("f", [...fieldColumns, "row_hash"]));
  const withField = prepareRecord<PackedField>(db, { columns: `${field} AS field`, join: fields });
  const withChunks = prepareRecord<PackedField & { readonly chunks: string }>(db, {
    columns: `${field} AS field, ${chunksOf(db.dialect, "f.address", "f.position")} AS chunks`,
    join: fields,
    batch: large,
  });
  const withChunk = prepareRecord<PackedItem>(db, {
    columns: `${field} AS field, ${jsonObject(columnsOf("c", [...chunkColumns, "row_hash"]))} AS chunk,
      ${itemsBefore("c.position")} AS first_item, ${itemsBefore("9007199254740991")} AS all_items`,
    join: `${fields} LEFT JOIN program_chunks c ON c.address = f.address AND c.field = f.position AND c.position = ${chunkHolding("CAST(k.value ->> 2 AS bigint)")}`,
  });
  return { withData, withParts, withField, withChunks, withChunk, isUnindexed: prepareIndexChecks(db) };
}

/**
 * Prepares checks for rows that a corrupt index no longer finds. They are called after a lookup found nothing. Each
 * searches by another index, and returns true if only that search finds a row.
 */
function prepareIndexChecks({ prepare }: Queries) {
  const program = prepare(
    `SELECT 1 FROM program_documents d WHERE d.address = ?
      AND NOT EXISTS (SELECT 1 FROM programs p WHERE p.address = ? AND NOT p.deleted)`,
  );
  // The expression `|| ''` prevents the use of the name index.
  const field = prepare(
    `SELECT 1 FROM program_fields f WHERE f.address = ? AND f.name_json || '' = ?
      AND NOT EXISTS (SELECT 1 FROM program_fields g WHERE g.address = ? AND g.name_json = ?) LIMIT 1`,
    "list",
  );
  return {
    program: async (address: string): Promise<boolean> => (await program(address, address)).length > 0,
    async field(address: string, name: string): Promise<boolean> {
      const json = JSON.stringify(name);
      return (await field(address, json, address, json)).length > 0;
    },
  };
}

/** Returns SQL for the number of items of field `f` in the chunks before a position. */
function itemsBefore(position: string): string {
  return `(SELECT coalesce(sum(b.items), 0) FROM program_chunks b
    WHERE b.address = f.address AND b.field = f.position AND b.position < ${position})`;
}

/** Returns SQL for the position of the chunk of field `f` that holds an item, or of the last chunk if none holds it. */
function chunkHolding(index: string): string {
  return `(SELECT max(s.position) FROM (SELECT b.position, sum(b.items) OVER (ORDER BY b.position) - b.items AS first_item
    FROM program_chunks b WHERE b.address = f.address AND b.field = f.position) s WHERE s.first_item <= ${index})`;
}

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
  const fields = dialect.jsonPortions({
    item: dialect.jsonList([...fieldColumns.slice(1).map((name) => `f.${name}`), "f.row_hash"]),
    from: `program_fields f WHERE f.address = ${address}`,
    orderBy: "f.position",
    portion: `f.position / ${portionRows}`,
  });
  return `d.data, d.row_hash, ${fields} AS fields, ${chunksOf(dialect, address)} AS chunks`;
}

/**
 * Reads of full documents in parts that run at the same time for requests. Each takes tens of MiB for a document with very
 * many fields. Documents take turns. Blocks read without waiting for requests.
 */
export const fullReads = new FairLimit(1);

/**
 * @param work long work of which the read is a part. Default: that of the node itself.
 * @throws CorruptionError if the document in parts does not have the expected size.
 */
export async function readFull(db: Queries, address: string, sizeBytes: number, work?: Flow): Promise<string> {
  return await joinParts(address, await readParts(db, address), sizeBytes, work);
}

/** Reads the rows of a document in parts, without checking them. */
export async function readParts(db: Queries, address: string): Promise<PartsRow> {
  const [parts] = await db.rows<PartsRow>((sql) =>
    sql.raw(`SELECT ${partsColumns(db.dialect, "d.address")} FROM program_documents d WHERE d.address = ?`, [address]),
  );
  return parts!;
}
