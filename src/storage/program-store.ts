/**
 * Reads of storage programs in the database. What each returns comes of one query, so that the rule a read is checked
 * against and what it returns are of the same moment.
 */
import { prepareBatch } from "../db/batch.js";
import type { Lane, Queries } from "../db/database.js";
import type { AccessRule } from "./access.js";
import type { JsonType } from "./json-text.js";
import { createProgramLists } from "./program-list-store.js";
import { wholeDocument, wholeValue } from "./program-text-store.js";
import type { Field, FieldPortion, ProgramRecord, Programs } from "./programs.js";

/** A record as one column: a driver makes one long text of a row faster than many short ones. */
interface PackedRow {
  /** Where its key stands among those that were asked for. */
  readonly slot: number;
  /** JSON text of a {@link PackedRecord}. */
  readonly record: string;
}

/** What a row packs, parsed. */
type PackedRecord = Omit<ProgramRecord, "access" | "metadata"> &
  Pick<AccessRule, "owner" | "mode"> & {
    readonly lists: Omit<AccessRule, "owner" | "mode">;
    readonly metadata: string | null;
  };

/** Builds the reads. */
export function createProgramStore(db: Queries): Programs {
  const { jsonArray, jsonObject, jsonValue } = db.dialect;
  const packed: Readonly<Record<keyof PackedRecord, string>> = {
    address: "p.address",
    name: "p.name",
    encoding: "p.encoding",
    type: "p.type",
    owner: "p.owner",
    mode: "p.mode",
    lists: jsonValue("p.access"),
    metadata: "p.metadata",
    sizeBytes: "p.size_bytes",
    createdMs: "p.created_ms",
    updatedMs: "p.updated_ms",
  };
  /** A program, and more, by a key: a list whose first item is the address. */
  function prepareRecord<Extra>(extraColumns: string, join = "", lane?: Lane) {
    return prepareBatch<PackedRow & Extra>(
      db,
      ({ table, slot }) => `SELECT ${slot} AS slot, ${jsonObject(packed)} AS record, ${extraColumns}
        FROM ${table} JOIN programs p ON p.address = k.value ->> 0 ${join} WHERE NOT p.deleted`,
      lane,
    );
  }
  const documents = "LEFT JOIN program_documents d ON d.address = p.address";
  const withData = prepareRecord<{ data: string | null; in_parts: boolean | number }>("d.data, p.in_parts", documents);
  // What is put together of many rows takes its time: nobody who reads a small document waits for that.
  const withWholeData = prepareRecord<{ data: string | null }>(
    `${wholeDocument(db.dialect)} AS data`,
    documents,
    "list",
  );
  const fieldNames = jsonArray({
    item: "f.name_json",
    from: "program_fields f WHERE f.address = p.address",
    orderBy: "f.position",
  });
  const withNames = prepareRecord<{ names: string }>(`${fieldNames} AS names`);
  const fields = "LEFT JOIN program_fields f ON f.address = p.address AND f.name_json = k.value ->> 1";
  const withField = prepareRecord<FieldValue>("f.type AS field_type, f.value AS field_value, f.items", fields);
  const withWholeField = prepareRecord<FieldValue>(
    `f.type AS field_type, ${wholeValue(db.dialect)} AS field_value, NULL AS items`,
    fields,
    "list",
  );
  const withChunk = prepareRecord<FieldValue & { first_item: number }>(
    `f.type AS field_type, coalesce(c.text, f.value) AS field_value, f.items, ${itemsBefore("c.position")} AS first_item`,
    `${fields} LEFT JOIN program_chunks c ON c.address = f.address AND c.field = f.position AND c.position = ${chunkWith("CAST(k.value ->> 2 AS bigint)")}`,
  );

  /** A field as its row has it, whose value may be without its chunks. */
  async function findField(address: string, name: string): Promise<(PackedRow & FieldValue) | undefined> {
    return await withField([address, JSON.stringify(name)]);
  }

  return {
    ...createProgramLists(db),

    // Most documents are small, and the query of one text is all that is asked for them.
    async findWithData(address) {
      const row = await withData([address]);
      if (row === undefined || !row.in_parts) {
        return row && { record: toRecord(row), data: row.data ?? undefined };
      }
      const whole = await withWholeData([address]);
      return whole && { record: toRecord(whole), data: whole.data ?? undefined };
    },

    async findWithFieldNames(address) {
      const row = await withNames([address]);
      return row && { record: toRecord(row), names: JSON.parse(row.names) as string[] };
    },

    async findWithField(address, name) {
      let row = await findField(address, name);
      if (row !== undefined && row.items !== null) {
        row = await withWholeField([address, JSON.stringify(name)]);
      }
      return row && { record: toRecord(row), field: toField(row) };
    },

    async findWithItem(address, name, index) {
      const row = await findField(address, name);
      if (row === undefined || row.items === null || row.field_type !== "array") {
        return row && { record: toRecord(row), field: toPortion(row, 0) };
      }
      const found = await withChunk([address, JSON.stringify(name), String(index)]);
      return found && { record: toRecord(found), field: toPortion(found, found.first_item) };
    },
  };
}

/** A field of a program; nulls where there is none. */
interface FieldValue {
  readonly field_type: JsonType | null;
  readonly field_value: string | null;
  /** How many items are in chunks; null when there are none. */
  readonly items: number | null;
}

function toField({ field_type: type, field_value: value }: FieldValue): Field | undefined {
  return type === null || value === null ? undefined : { type, value };
}

function toPortion(value: FieldValue, firstItem: number): FieldPortion | undefined {
  const field = toField(value);
  return field === undefined || value.items === null
    ? field
    : { ...field, chunk: { firstItem, arrayItems: value.items } };
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

function toRecord({ record }: PackedRow): ProgramRecord {
  const packed = JSON.parse(record) as PackedRecord;
  const { allowed, blacklisted, groups } = packed.lists;
  return {
    address: packed.address,
    name: packed.name,
    encoding: packed.encoding,
    type: packed.type,
    access: { owner: packed.owner, mode: packed.mode, allowed, blacklisted, groups },
    metadata: packed.metadata ?? undefined,
    sizeBytes: packed.sizeBytes,
    createdMs: packed.createdMs,
    updatedMs: packed.updatedMs,
  };
}
