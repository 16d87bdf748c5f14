/** The queries of single programs: each gives, as one row, all that one read needs. Nothing is checked here. */
import { type BatchOptions, prepareBatch } from "../../db/rows/batch.js";
import type { Queries } from "../../db/queries/database.js";
import { chunksOf, partsColumns } from "./program-parts-store.js";
import { type Deps, programColumns, type TextRow } from "../programs/stored-program.js";

/** A row as one column: a driver makes one long text of a row faster than many short ones. */
export interface PackedRow {
  /** Where its key stands among those that were asked for. */
  readonly slot: number;
  /** JSON text of a {@link ProgramRow}. */
  readonly record: string;
}

/** A program and one of its fields. */
export interface PackedField extends PackedRow {
  /** JSON text of a {@link FieldRecord}; of nulls where there is none. */
  readonly field: string;
}

/** And the chunk of the field that has an item, or the last one. */
export interface PackedItem extends PackedField {
  /** JSON text of a {@link ChunkRecord}; of nulls where there is none. */
  readonly chunk: string;
  readonly first_item: number;
  readonly all_items: number | null;
}

const fieldColumns = ["address", "position", "name_json", "type", "items", "size_bytes", "text_before", "value"];
const chunkColumns = ["address", "field", "position", "items", "size_bytes", "text"];

const columnsOf = (table: string, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.map((name) => [name, `${table}.${name}`]));

/** Rows of programs, each with more that stands beside it. */
interface RecordQuery {
  readonly columns: string;
  /** What the columns are of, beside the program, `p`. */
  readonly join: string;
  /** Whether those that were deleted are found as well. */
  readonly withDeleted?: boolean;
  readonly batch?: BatchOptions;
}

/** What is put together of many rows takes its time, and may be 1 MiB: nobody who reads a small document waits for that. */
const large: BatchOptions = { lane: "list", maxKeys: 16 };

/** A program, and more, by a key: a list whose first item is the address. */
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

/** Prepares the query of a program, deleted or not, with the text of its document. The key is the address in a list. */
export function prepareAnyProgram(db: Queries): (key: readonly [string]) => Promise<(PackedRow & TextRow) | undefined> {
  return prepareRecord<TextRow>(db, { ...text, withDeleted: true });
}

/** Prepares them. The key of each is a list: the address, the name of a field as JSON, the index of an item. */
export function prepareProgramQueries(db: Queries) {
  const { jsonObject } = db.dialect;
  const withData = prepareRecord<TextRow>(db, text);
  const withParts = prepareRecord<Deps>(db, {
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
    join: `${fields} LEFT JOIN program_chunks c ON c.address = f.address AND c.field = f.position AND c.position = ${chunkWith("CAST(k.value ->> 2 AS bigint)")}`,
  });
  return { withData, withParts, withField, withChunks, withChunk, isHidden: prepareHidden(db) };
}

/** The queries. */
export type ProgramQueries = ReturnType<typeof prepareProgramQueries>;

/** Looks for what an index does not lead to any more, where nothing was found: in another order, in one moment. */
function prepareHidden({ prepare }: Queries) {
  const program = prepare(
    `SELECT 1 FROM program_documents d WHERE d.address = ?
      AND NOT EXISTS (SELECT 1 FROM programs p WHERE p.address = ? AND NOT p.deleted)`,
  );
  // An expression is in no index of names.
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

/** How many items of a field `f` stand before a chunk. */
function itemsBefore(position: string): string {
  return `(SELECT coalesce(sum(b.items), 0) FROM program_chunks b
    WHERE b.address = f.address AND b.field = f.position AND b.position < ${position})`;
}

/** Position of the chunk of a field `f` that has this item, of the last one when none has. */
function chunkWith(index: string): string {
  return `(SELECT max(s.position) FROM (SELECT b.position, sum(b.items) OVER (ORDER BY b.position) - b.items AS first_item
    FROM program_chunks b WHERE b.address = f.address AND b.field = f.position) s WHERE s.first_item <= ${index})`;
}
