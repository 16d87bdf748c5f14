/**
 * Reads storage programs from the database. Each result comes from one query, so that the access rule and the contents
 * belong to the same snapshot. All rows are checked against their checksums.
 */
import { requestWork } from "../../base/async/yielding.js";
import type { Queries } from "../../db/queries/database.js";
import { createProgramLists } from "./program-list-store.js";
import {
  fullReads,
  type PackedField,
  type PackedItem,
  type PackedRow,
  prepareProgramQueries,
} from "./program-query-store.js";
import { isHidden } from "../programs/access.js";
import type { Field, FieldPortion, ProgramReader, Programs } from "../programs/programs.js";
import {
  checkChunk,
  checkDocument,
  checkField,
  checkProgram,
  type ChunkRecord,
  corruptionOf,
  type FieldRecord,
  joinParts,
  joinValue,
  parse,
  type ProgramRow,
  readChunks,
  toRecord,
  typeOf,
} from "../programs/stored-program.js";

export function createProgramStore(db: Queries): Programs {
  const queries = prepareProgramQueries(db);

  /**
   * Returns the checked row; undefined if there is none, or if the program is hidden from the reader.
   *
   * @throws CorruptionError also if an index does not lead to the program's row.
   */
  async function checkRow<Row extends PackedRow>(address: string, row: Row | undefined, reader?: ProgramReader) {
    if (row !== undefined) {
      const program = checkProgram(address, parse(address, row.record, "row") as ProgramRow);
      const record = toRecord(program);
      if (reader === undefined || !isHidden(record.access, reader.identity)) {
        return { row, program, record };
      }
    }
    // Also for a hidden program, which the query does not find either.
    if (await queries.isUnindexed.program(address)) {
      throw corruptionOf(address, "row");
    }
    return undefined;
  }

  /**
   * Reads a program with one of its fields, which is undefined if the program does not have it. The value of a large
   * field is incomplete without its chunks.
   */
  async function readField<Row extends PackedField>(
    find: (key: readonly string[]) => Promise<Row | undefined>,
    reader: ProgramReader | undefined,
    address: string,
    name: string,
    ...index: readonly string[]
  ) {
    const found = await checkRow(address, await find([address, JSON.stringify(name), ...index]), reader);
    if (found === undefined) {
      return undefined;
    }
    const { row, record } = found;
    const field = parse(address, row.field, "field") as FieldRecord | { readonly address: null };
    if (field.address === null) {
      if (await queries.isUnindexed.field(address, name)) {
        throw corruptionOf(address, "field");
      }
      return { row, record, field: undefined };
    }
    if (checkField(address, field).name_json !== JSON.stringify(name)) {
      throw corruptionOf(address, "field");
    }
    return { row, record, field };
  }

  return {
    ...createProgramLists(db),

    async findWithData(address, reader) {
      // Most documents are stored as one text. A block may change the form between the two queries; then both are
      // repeated.
      for (;;) {
        const small = await checkRow(address, await queries.withData([address]), reader);
        if (small === undefined || !small.program.in_parts) {
          return small && { record: small.record, data: checkDocument(small.program, small.row) };
        }
        const { large, data } = await fullReads.run(address, async () => {
          const found = await checkRow(address, await queries.withParts([address]), reader);
          const data =
            found === undefined || !found.program.in_parts
              ? undefined
              : await joinParts(address, found.row, found.program.size_bytes, requestWork);
          return { large: found, data };
        });
        if (large === undefined || large.program.in_parts) {
          return large && { record: large.record, data };
        }
      }
    },

    async findWithField(address, name, reader) {
      const found = await readField(queries.withField, reader, address, name);
      if (found?.field === undefined || found.field.items === null) {
        return found && { record: found.record, field: toField(found.field) };
      }
      const full = await readField(queries.withChunks, reader, address, name);
      if (full?.field === undefined) {
        return full && { record: full.record, field: undefined };
      }
      const value = joinValue(address, full.field, readChunks(address, full.row.chunks));
      return { record: full.record, field: { type: typeOf(full.field), value } };
    },

    async findWithItem(address, name, index, reader) {
      const found = await readField(queries.withField, reader, address, name);
      if (found?.field === undefined || found.field.items === null || found.field.type !== "array") {
        return found && { record: found.record, field: toField(found.field) };
      }
      const exact = await readField(queries.withChunk, reader, address, name, String(index));
      if (exact?.field === undefined || exact.field.items === null) {
        return exact && { record: exact.record, field: toField(exact.field) };
      }
      return { record: exact.record, field: toPortion(address, exact.field, exact.row) };
    },
  };
}

function toField(field: FieldRecord | undefined): Field | undefined {
  return field && { type: typeOf(field), value: field.value };
}

/** Checks and returns the chunk that holds an item, or the last chunk. */
function toPortion(address: string, field: FieldRecord, row: PackedItem): FieldPortion {
  const chunk = parse(address, row.chunk, "chunk of a field") as ChunkRecord | { readonly address: null };
  if (chunk.address === null || field.items === null || row.all_items !== field.items) {
    throw corruptionOf(address, "chunk of a field");
  }
  const { text, field: of } = checkChunk(address, chunk);
  if (of !== field.position) {
    throw corruptionOf(address, "chunk of a field");
  }
  return { type: typeOf(field), value: text, chunk: { firstItem: row.first_item, arrayItems: field.items } };
}
