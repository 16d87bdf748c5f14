/**
 * Reads of storage programs in the database. Each is one query, so that the rule a read is checked against and what it
 * returns are of the same moment.
 */
import { prepareBatch } from "../db/batch.js";
import type { Queries } from "../db/database.js";
import type { AccessRule } from "./access.js";
import type { JsonType } from "./document.js";
import { createProgramLists } from "./program-list-store.js";
import type { ProgramRecord, Programs } from "./programs.js";

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
  function prepareRecord<Extra>(extraColumns: string, join = "") {
    return prepareBatch<PackedRow & Extra>(
      db,
      ({ table, slot }) => `SELECT ${slot} AS slot, ${jsonObject(packed)} AS record, ${extraColumns}
        FROM ${table} JOIN programs p ON p.address = k.value ->> 0 ${join} WHERE NOT p.deleted`,
    );
  }
  const withData = prepareRecord<{ data: string | null }>(
    "d.data",
    "LEFT JOIN program_documents d ON d.address = p.address",
  );
  const fieldNames = jsonArray({
    item: "f.name_json",
    from: "program_fields f WHERE f.address = p.address",
    orderBy: "f.position",
  });
  const withNames = prepareRecord<{ names: string }>(`${fieldNames} AS names`);
  const withField = prepareRecord<{ field_type: JsonType | null; field_value: string | null }>(
    "f.type AS field_type, f.value AS field_value",
    "LEFT JOIN program_fields f ON f.address = p.address AND f.name_json = k.value ->> 1",
  );

  return {
    ...createProgramLists(db),

    async findWithData(address) {
      const row = await withData([address]);
      return row && { record: toRecord(row), data: row.data ?? undefined };
    },

    async findWithFieldNames(address) {
      const row = await withNames([address]);
      return row && { record: toRecord(row), names: JSON.parse(row.names) as string[] };
    },

    async findWithField(address, name) {
      const row = await withField([address, JSON.stringify(name)]);
      if (row === undefined) {
        return undefined;
      }
      const { field_type: type, field_value: value } = row;
      return { record: toRecord(row), field: type === null || value === null ? undefined : { type, value } };
    },
  };
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
