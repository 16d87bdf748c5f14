/** Tables of storage programs, as buffered for the transactions of a block. */
import type { WriteBuffer, BufferedTable } from "../../db/rows/write-buffer.js";
import {
  checkChunk,
  checkField,
  checkProgram,
  checkText,
  type ChunkRecord,
  type FieldRecord,
  type ProgramRow,
} from "../programs/stored-program.js";
import type { CostCounter } from "../programs/cost.js";

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

/** Tables of storage programs. Rows of the other tables refer to rows of `programs`. */
export interface ProgramTables {
  readonly programs: BufferedTable<ProgramTableRow>;
  readonly readers: BufferedTable<ReaderRow>;
  readonly documents: BufferedTable<DocumentRecord>;
  readonly fields: BufferedTable<FieldRecord>;
  readonly chunks: BufferedTable<ChunkRecord>;
}

/** Context of one document: the tables, the program's address, and the counter of the operation's cost. */
export interface DocumentContext {
  readonly tables: ProgramTables;
  readonly address: string;
  readonly cost: CostCounter;
}

/** Registers the tables with the write buffer of a block. */
export function addProgramTables(buffer: WriteBuffer): ProgramTables {
  return {
    programs: buffer.table<ProgramTableRow>({
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
    }),
    readers: buffer.table<ReaderRow>({
      name: "program_readers",
      group: "address",
      within: ["identity"],
      columns: { address: "text", identity: "text", allowed: "boolean" },
      changing: [],
      check: () => undefined,
    }),
    documents: buffer.table<DocumentRecord>({
      name: "program_documents",
      group: "address",
      within: [],
      columns: { address: "text", data: "text", row_hash: "text" },
      changing: ["data", "row_hash"],
      check: (row) => checkText(row.address, row),
    }),
    fields: buffer.table<FieldRecord>({
      name: "program_fields",
      group: "address",
      within: ["position"],
      columns: {
        ...{ address: "text", position: "integer", name_json: "text", type: "text", items: "integer" },
        ...{ size_bytes: "integer", text_before: "text", value: "text", row_hash: "text" },
      },
      changing: ["type", "items", "size_bytes", "text_before", "value", "row_hash"],
      check: (row) => checkField(row.address, row),
    }),
    chunks: buffer.table<ChunkRecord>({
      name: "program_chunks",
      group: "address",
      within: ["field", "position"],
      columns: {
        ...{ address: "text", field: "integer", position: "integer", items: "integer", size_bytes: "integer" },
        ...{ text: "text", row_hash: "text" },
      },
      changing: ["items", "size_bytes", "text", "row_hash"],
      check: (row) => checkChunk(row.address, row),
    }),
  };
}
