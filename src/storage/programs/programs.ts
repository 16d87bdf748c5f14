/** Interfaces of stored programs: reads for the services, and changes by blocks. */
import type { TransactionBody } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type { StorageOperation } from "../../../gen/gatehouse/storage/v1/operation_pb.js";
import type { AccessRule } from "./access.js";
import type { Chunk } from "../documents/document-parts.js";
import type { LeafChange } from "../../tree/change.js";
import type { ObjectParts } from "../../tree/state-format.js";
import type { JsonType } from "../documents/json-text.js";
import type { ListPage } from "../documents/paging.js";
import type { CostCounter } from "./cost.js";

/** Program without its document. */
export interface ProgramRecord {
  readonly address: string;
  readonly name: string;
  readonly encoding: "json" | "binary";
  /** Type of the document; binary if it is not JSON. */
  readonly type: JsonType | "binary";
  readonly access: AccessRule;
  /** JSON text of an object. */
  readonly metadata: string | undefined;
  readonly sizeBytes: number;
  readonly createdMs: number;
  readonly updatedMs: number;
}

/** Program with its document's JSON text. */
export interface FullProgram {
  readonly record: ProgramRecord;
  readonly data: string | undefined;
}

/** Program as an entry of a list. */
export type ProgramEntry = Pick<
  ProgramRecord,
  "address" | "name" | "encoding" | "sizeBytes" | "createdMs" | "updatedMs"
> & {
  readonly owner: string;
};

/** Top-level field of a document. */
export interface Field {
  readonly type: JsonType;
  /** JSON text of the value. */
  readonly value: string;
}

/** Top-level field, read for one of its items: of a large array, only the chunk that holds the item. */
export interface FieldPortion extends Field {
  /** Index of the first item in `value`, and the length of the full array; undefined if `value` is the full value. */
  readonly chunk?: { readonly firstItem: number; readonly arrayItems: number };
}

/** Reads of stored programs. The result is undefined if the program does not exist or was deleted. */
export interface Programs {
  /** Finds a program with the JSON text of its document. */
  findWithData(address: string): Promise<FullProgram | undefined>;
  /** Finds a program with the names of its top-level fields, in the document's order. */
  findWithFieldNames(address: string): Promise<{ record: ProgramRecord; names: string[] } | undefined>;
  /** Finds a program with one top-level field. */
  findWithField(
    address: string,
    name: string,
  ): Promise<{ record: ProgramRecord; field: Field | undefined } | undefined>;
  /** Finds a program with the part of a top-level field that holds one item. */
  findWithItem(
    address: string,
    name: string,
    index: number,
  ): Promise<{ record: ProgramRecord; field: FieldPortion | undefined } | undefined>;
  /** Lists the programs of an owner that the caller may read, latest first. */
  listByOwner(owner: string, identity: string | undefined, page: ListPage): Promise<ProgramEntry[]>;
  /**
   * Lists the programs with this name that the caller may read, latest first.
   *
   * @param exact true for equal names; false for names that contain the query, regardless of case. Queries of fewer
   * than 3 characters search only the latest programs.
   */
  search(query: string, exact: boolean, identity: string | undefined, page: ListPage): Promise<ProgramEntry[]>;
  /** Counts all programs ever created, including deleted programs. */
  createdCount(): Promise<number>;
}

/**
 * Contents of a program: the text of a JSON document, or the base64 of a binary one as a JSON string; undefined if the
 * program is empty.
 */
export type ProgramContent =
  | {
      readonly encoding: "json" | "binary";
      /** Type of the document; binary if it is not JSON. */
      readonly type: JsonType | "binary";
      readonly text: string;
      readonly sizeBytes: number;
    }
  | undefined;

/** New access rule of a program, with the blinding that accompanies each rule. */
export interface NewAccess {
  readonly access: AccessRule;
  /** 64 hex digits, known only to readers of the transaction: see {@link ProgramParts.blinding}. */
  readonly blinding: string;
}

/** Program to create. */
export interface NewProgram extends NewAccess {
  readonly address: string;
  readonly name: string;
  readonly content: ProgramContent;
  /** JSON text of an object. */
  readonly metadata: string | undefined;
}

/** Program as an operation finds it before a change. */
export type ChangeableProgram = Pick<ProgramRecord, "address" | "encoding" | "type" | "access" | "sizeBytes"> & {
  /** True if the document is stored in parts. */
  readonly inParts: boolean;
};

/** State of an object document, as stored in its program's row. */
export type DocumentState = Pick<ChangeableProgram, "sizeBytes" | "inParts">;

/** Operation that will be executed, with the sender and nonce of its transaction. */
export interface ExpectedOperation {
  readonly operation: StorageOperation;
  readonly by: Pick<TransactionBody, "sender" | "nonce">;
}

/**
 * Hashed parts of an object, and the pages of the tree of its fields. Pages are texts, so that threads can pass them on
 * unchanged.
 */
export interface BuiltDocument extends ObjectParts {
  /** Texts for `saveTexts` of the tree's page store. */
  readonly pages: readonly string[];
}

/** Builds the field tree of a program's document, which is the JSON text of an object. */
export type BuildDocument = (address: string, text: string) => Promise<BuiltDocument>;

/** Options for computing the leaves. */
export interface LeavesOptions {
  /**
   * Resolves when all changes are in the database; by default they already are. Meanwhile, the leaves of programs whose
   * rows are buffered are computed.
   */
  readonly stored?: Promise<void>;
  /** Builds the field trees of documents; by default on the calling thread. */
  readonly build?: BuildDocument;
}

/** Changes of stored programs, in the transaction of a block. Times are block times. */
export interface ProgramChanges {
  /** Prefetches rows that the operations will read. Other rows are read on demand. */
  prefetch(operations: readonly ExpectedOperation[]): Promise<void>;
  /** Finds a program; undefined if it does not exist or was deleted. */
  find(address: string, cost: CostCounter): Promise<ChangeableProgram | undefined>;
  /** Returns true if a program exists or existed at this address. */
  wasCreated(address: string): Promise<boolean>;
  insert(program: NewProgram, timeMs: number, cost: CostCounter): Promise<void>;
  replaceContent(program: ChangeableProgram, content: ProgramContent, timeMs: number, cost: CostCounter): Promise<void>;
  /** Changes the rows of a document, and stores the resulting state in its program's row. */
  changeDocument(
    address: string,
    change: (rows: DocumentRows) => Promise<DocumentState>,
    timeMs: number,
    cost: CostCounter,
  ): Promise<void>;
  setAccess(address: string, access: NewAccess, timeMs: number, cost: CostCounter): Promise<void>;
  delete(program: ChangeableProgram, timeMs: number, cost: CostCounter): Promise<void>;
  /** Returns the state tree leaves of all programs that the block changed. Call it after all changes. */
  leaves(options?: LeavesOptions): Promise<LeafChange[]>;
}

/** Columns of a field's row other than its name. */
export interface FieldColumns {
  readonly type: JsonType;
  /** Text before the value; empty if the document is stored as one text. */
  readonly before: string;
  /** Value, or the text after its last chunk. */
  readonly value: string;
  /** Size of the full value in bytes; 0 if the document is stored as one text. */
  readonly sizeBytes: number;
  /** Number of array items in the chunks, 0 if the value is not an array; undefined if the value has no chunks. */
  readonly items: number | undefined;
}

export interface FieldRow extends FieldColumns {
  /** Position among the fields, which never changes. A new field has the highest position. */
  readonly position: number;
  readonly name: string;
}

/** Row of a chunk, without its text. */
export interface ChunkEntry {
  /** Position among the chunks of the field. Positions have gaps, for chunks that are inserted later. */
  readonly position: number;
  readonly items: number;
  readonly sizeBytes: number;
}

/** Rows of one document. Each access adds to the cost of the operation. */
export interface DocumentRows {
  /** Returns the full document, from one text or from its parts; undefined if there is no document. */
  fullText(state: DocumentState): Promise<string | undefined>;
  /** Returns the document that is stored as one text; for a document in parts, the text after the last value. */
  text(): Promise<string>;
  /** Stores the text that {@link DocumentRows.text} returns. */
  saveText(text: string): Promise<void>;
  field(name: string): Promise<FieldRow | undefined>;
  fieldAfter(position: number): Promise<FieldRow | undefined>;
  /** Returns the highest position of a field, or the highest below `below`; undefined if there is no such field. */
  lastPosition(below?: number): Promise<number | undefined>;
  /** Inserts fields at consecutive positions, starting at `position`. */
  insertFields(position: number, fields: readonly (FieldColumns & { readonly name: string })[]): Promise<void>;
  saveField(field: FieldRow): Promise<void>;
  deleteField(field: Pick<FieldRow, "position" | "name">): Promise<void>;
  /** Returns the chunks of a field, in order. */
  chunks(field: number): Promise<ChunkEntry[]>;
  lastChunk(field: number): Promise<ChunkEntry>;
  chunkText(field: number, position: number): Promise<string>;
  /** Returns the concatenated text of all chunks of a field. */
  chunkTexts(field: number): Promise<string>;
  insertChunks(field: number, chunks: readonly (Chunk & { readonly position: number })[]): Promise<void>;
  saveChunk(field: number, position: number, chunk: Chunk): Promise<void>;
  /** Adds text and items before or after those of a chunk. */
  extendChunk(field: number, chunk: ChunkEntry, more: { readonly [side in "before" | "after"]?: Chunk }): Promise<void>;
  deleteChunk(field: number, position: number): Promise<void>;
  /**
   * Deletes all chunks of a field.
   *
   * @param sizeBytes size of the field's value, which is added to the cost.
   */
  deleteChunks(field: number, sizeBytes: number): Promise<void>;
  /** Deletes all rows of the document. */
  clear(state: DocumentState): Promise<void>;
  /** Called after all rows of a document in parts were stored from this text. */
  onWritten(text: string): void;
}

/** Folds a name to lowercase. The database engines fold case differently, so the node does it. */
export function foldName(name: string): string {
  return name.toLowerCase();
}
