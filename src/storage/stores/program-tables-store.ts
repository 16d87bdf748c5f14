/** Tables of storage programs, as buffered for the transactions of a block. */
import type { TableShape, WriteBuffer } from "../../db/rows/write-buffer.js";
import {
  checkChunk,
  checkField,
  checkProgram,
  checkText,
  type ChunkRecord,
  type FieldRecord,
  type ProgramRow,
} from "../programs/stored-program.js";

/** Program's own row, with the folded name for searches. */
export type ProgramTableRow = ProgramRow & { readonly name_folded: string };

/** Row of a document's text, or of the text after the last value of a document in parts. */
export interface DocumentRecord {
  readonly address: string;
  readonly data: string;
  readonly row_hash: string;
}

/** Identity that a program's rule allows or excludes. */
export interface ReaderRow {
  readonly address: string;
  readonly identity: string;
  readonly allowed: boolean | number;
}

/** Tables of storage programs, in the order in which rows are stored: the others refer to rows of `programs`. */
export const programShapes: {
  readonly programs: TableShape<ProgramTableRow>;
  readonly readers: TableShape<ReaderRow>;
  readonly documents: TableShape<DocumentRecord>;
  readonly fields: TableShape<FieldRecord>;
  readonly chunks: TableShape<ChunkRecord>;
} = {
  programs: {
    name: "programs",
    group: "address",
    within: [],
    columns: {
      ...{ address: "text", owner: "text", name: "text", name_folded: "text", encoding: "text", type: "text" },
      ...{ mode: "text", access: "text", metadata: "text", size_bytes: "integer", created_ms: "integer" },
      ...{ updated_ms: "integer", deleted: "boolean", in_parts: "boolean", blinding: "text" },
      ...{ entry_hash: "text", rest_hash: "text" },
    },
    changing: [
      ...(["encoding", "type", "mode", "access", "size_bytes", "updated_ms", "deleted", "in_parts"] as const),
      ...(["blinding", "entry_hash", "rest_hash"] as const),
    ],
    check: (row) => checkProgram(row.address, row),
  },
  readers: {
    name: "program_readers",
    group: "address",
    within: ["identity"],
    columns: { address: "text", identity: "text", allowed: "boolean" },
    changing: [],
    check: () => undefined,
  },
  documents: {
    name: "program_documents",
    group: "address",
    within: [],
    columns: { address: "text", data: "text", row_hash: "text" },
    changing: ["data", "row_hash"],
    check: (row) => checkText(row.address, row),
  },
  fields: {
    name: "program_fields",
    group: "address",
    within: ["position"],
    columns: {
      ...{ address: "text", position: "integer", name_json: "text", type: "text", items: "integer" },
      ...{ size_bytes: "integer", text_before: "text", value: "text", row_hash: "text" },
    },
    changing: ["type", "items", "size_bytes", "text_before", "value", "row_hash"],
    check: (row) => checkField(row.address, row),
  },
  chunks: {
    name: "program_chunks",
    group: "address",
    within: ["field", "position"],
    columns: {
      ...{ address: "text", field: "integer", position: "integer", items: "integer", size_bytes: "integer" },
      ...{ text: "text", row_hash: "text" },
    },
    changing: ["items", "size_bytes", "text", "row_hash"],
    check: (row) => checkChunk(row.address, row),
  },
};

export type ProgramTables = ReturnType<typeof addProgramTables>;

/** Registers the tables with the write buffer of a block. */
export function addProgramTables(buffer: WriteBuffer) {
  const { programs, readers, documents, fields, chunks } = programShapes;
  return {
    programs: buffer.table(programs),
    readers: buffer.table(readers),
    documents: buffer.table(documents),
    fields: buffer.table(fields),
    chunks: buffer.table(chunks),
  };
}
