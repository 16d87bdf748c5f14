/**
 * Reads of storage programs in the database. What each returns comes of one query, so that the rule a read is checked
 * against and what it returns are of the same moment; and was compared with the checksums that it was stored with.
 */
import { prepareBatch } from "../db/batch.js";
import type { Lane, Queries } from "../db/database.js";
import { membersOf } from "./document.js";
import { createProgramLists } from "./program-list-store.js";
import { allChunksOf, chunksOf, fieldsOf } from "./program-parts-store.js";
import type { Field, FieldPortion, ProgramRecord, Programs } from "./programs.js";
import {
  checkChunk,
  checkDocument,
  checkField,
  checkProgram,
  type ChunkRecord,
  damaged,
  type FieldRecord,
  type JoinedParts,
  joinParts,
  joinValue,
  parse,
  type Parts,
  programColumns,
  type ProgramRow,
  readChunks,
  type TextRow,
  toRecord,
  typeOf,
} from "./stored-program.js";

/** A row as one column: a driver makes one long text of a row faster than many short ones. */
interface PackedRow {
  /** Where its key stands among those that were asked for. */
  readonly slot: number;
  /** JSON text of a {@link ProgramRow}. */
  readonly record: string;
}

/** A program and one of its fields. */
interface PackedField extends PackedRow {
  /** JSON text of a {@link FieldRecord}; of nulls where there is none. */
  readonly field: string;
}

const fieldColumns = ["address", "position", "name_json", "type", "items", "size_bytes", "text_before", "value"];
const chunkColumns = ["address", "field", "position", "items", "size_bytes", "text"];

const columnsOf = (table: string, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.map((name) => [name, `${table}.${name}`]));

/** Builds the reads. */
export function createProgramStore(db: Queries): Programs {
  const { jsonObject } = db.dialect;
  /** A program, and more, by a key: a list whose first item is the address. */
  function prepareRecord<Extra>(extraColumns: string, join = "", lane?: Lane) {
    return prepareBatch<PackedRow & Extra>(
      db,
      ({
        table,
        slot,
      }) => `SELECT ${slot} AS slot, ${jsonObject(columnsOf("p", programColumns))} AS record, ${extraColumns}
        FROM ${table} JOIN programs p ON p.address = k.value ->> 0 ${join} WHERE NOT p.deleted`,
      lane,
    );
  }
  const documents = "LEFT JOIN program_documents d ON d.address = p.address";
  const withData = prepareRecord<TextRow>("d.data, d.row_hash", documents);
  // What is put together of many rows takes its time: nobody who reads a small document waits for that.
  const withParts = prepareRecord<Parts>(
    `d.data, d.row_hash, ${fieldsOf(db.dialect, "p.address")} AS fields, ${allChunksOf(db.dialect, "p.address")} AS chunks`,
    documents,
    "list",
  );
  const fields = "LEFT JOIN program_fields f ON f.address = p.address AND f.name_json = k.value ->> 1";
  const field = jsonObject(columnsOf("f", [...fieldColumns, "row_hash"]));
  const withField = prepareRecord<PackedField>(`${field} AS field`, fields);
  const withChunks = prepareRecord<PackedField & { readonly chunks: string }>(
    `${field} AS field, ${chunksOf(db.dialect, "f.address", "f.position")} AS chunks`,
    fields,
    "list",
  );
  const withChunk = prepareRecord<
    PackedField & { readonly chunk: string; readonly first_item: number; readonly all_items: number | null }
  >(
    `${field} AS field, ${jsonObject(columnsOf("c", [...chunkColumns, "row_hash"]))} AS chunk,
      ${itemsBefore("c.position")} AS first_item, ${itemsBefore("9007199254740991")} AS all_items`,
    `${fields} LEFT JOIN program_chunks c ON c.address = f.address AND c.field = f.position AND c.position = ${chunkWith("CAST(k.value ->> 2 AS bigint)")}`,
  );
  const isHidden = prepareHidden(db);

  /** The row of a program that was asked for; undefined where there is none. */
  async function recordOf<Row extends PackedRow>(
    address: string,
    row: Row | undefined,
  ): Promise<{ readonly row: Row; readonly program: ProgramRow } | undefined> {
    if (row === undefined) {
      if (await isHidden.program(address)) {
        throw damaged(address, "row");
      }
      return undefined;
    }
    return { row, program: checkProgram(address, parse(address, row.record, "row") as ProgramRow) };
  }

  /** A document in parts. */
  async function readParts(address: string): Promise<{ record: ProgramRecord; joined: JoinedParts } | undefined> {
    const found = await recordOf(address, await withParts([address]));
    if (found === undefined) {
      return undefined;
    }
    const { row, program } = found;
    return { record: toRecord(program), joined: await joinParts(address, row, program.size_bytes) };
  }

  /** A document that is kept as one text, or undefined for one in parts. */
  async function readText(address: string) {
    const found = await recordOf(address, await withData([address]));
    if (found === undefined) {
      return { isThere: false } as const;
    }
    const { row, program } = found;
    return program.in_parts
      ? ({ isThere: true, isInParts: true } as const)
      : ({ isThere: true, isInParts: false, record: toRecord(program), data: checkDocument(program, row) } as const);
  }

  /** A field as its row has it, whose value may be without its chunks. */
  async function findField(address: string, name: string) {
    return await fieldOf(address, name, await withField([address, JSON.stringify(name)]));
  }

  async function fieldOf<Row extends PackedField>(address: string, name: string, packed: Row | undefined) {
    const found = await recordOf(address, packed);
    if (found === undefined) {
      return undefined;
    }
    const { row, program } = found;
    const record = parse(address, row.field, "field") as FieldRecord | { readonly address: null };
    if (record.address === null) {
      if (await isHidden.field(address, name)) {
        throw damaged(address, "field");
      }
      return { row, record: toRecord(program), field: undefined };
    }
    const checked = checkField(address, record);
    if (checked.name_json !== JSON.stringify(name)) {
      throw damaged(address, "field");
    }
    return { row, record: toRecord(program), field: checked };
  }

  return {
    ...createProgramLists(db),

    // Most documents are small, and the query of one text is all that is asked for them.
    async findWithData(address) {
      const found = await readText(address);
      if (!found.isThere || !found.isInParts) {
        return found.isThere ? { record: found.record, data: found.data } : undefined;
      }
      const whole = await readParts(address);
      return whole && { record: whole.record, data: whole.joined.text };
    },

    async findWithFieldNames(address) {
      const found = await readText(address);
      if (!found.isThere || !found.isInParts) {
        return found.isThere ? { record: found.record, names: namesOf(found.record, found.data) } : undefined;
      }
      const whole = await readParts(address);
      return whole && { record: whole.record, names: [...whole.joined.names] };
    },

    async findWithField(address, name) {
      const found = await findField(address, name);
      if (found?.field === undefined || found.field.items === null) {
        return found && { record: found.record, field: toField(found.field) };
      }
      const whole = await fieldOf(address, name, await withChunks([address, JSON.stringify(name)]));
      if (whole?.field === undefined) {
        return whole && { record: whole.record, field: undefined };
      }
      const chunks = whole.field.items === null ? [] : readChunks(address, whole.row.chunks);
      return {
        record: whole.record,
        field: { type: typeOf(whole.field), value: joinValue(address, whole.field, chunks) },
      };
    },

    async findWithItem(address, name, index) {
      const found = await findField(address, name);
      if (found?.field === undefined || found.field.items === null || found.field.type !== "array") {
        return found && { record: found.record, field: toField(found.field) };
      }
      const exact = await fieldOf(address, name, await withChunk([address, JSON.stringify(name), String(index)]));
      if (exact?.field === undefined || exact.field.items === null) {
        return exact && { record: exact.record, field: toField(exact.field) };
      }
      return { record: exact.record, field: toPortion(address, exact.field, exact.row) };
    },
  };
}

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

function namesOf({ type }: ProgramRecord, data: string | undefined): string[] {
  return type === "object" && data !== undefined ? membersOf(data).map(({ name }) => name) : [];
}

function toField(field: FieldRecord | undefined): Field | undefined {
  return field && { type: typeOf(field), value: field.value };
}

/** The chunk with an item, or the last one. */
function toPortion(
  address: string,
  field: FieldRecord,
  row: { readonly chunk: string; readonly first_item: number; readonly all_items: number | null },
): FieldPortion {
  const chunk = parse(address, row.chunk, "chunk of a field") as ChunkRecord | { readonly address: null };
  if (chunk.address === null || field.items === null || row.all_items !== field.items) {
    throw damaged(address, "chunk of a field");
  }
  const { text, field: of } = checkChunk(address, chunk);
  if (of !== field.position) {
    throw damaged(address, "chunk of a field");
  }
  return { type: typeOf(field), value: text, chunk: { firstItem: row.first_item, arrayItems: field.items } };
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
