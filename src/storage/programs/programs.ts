/** Storage programs as they are stored: what is read of them, and what blocks change. */
import type { TransactionBody } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type { StorageOperation } from "../../../gen/gatehouse/storage/v1/operation_pb.js";
import type { AccessRule } from "./access.js";
import type { Chunk } from "../documents/document-parts.js";
import type { LeafChange } from "../../tree/change.js";
import type { ObjectParts } from "../../tree/state-format.js";
import type { JsonType } from "../documents/json-text.js";
import type { ListPage } from "../documents/paging.js";
import type { Work } from "./work.js";

/** A program, without its document. */
export interface ProgramRecord {
  readonly address: string;
  readonly name: string;
  readonly encoding: "json" | "binary";
  /** Type of the document; binary when it is no JSON. */
  readonly type: JsonType | "binary";
  readonly access: AccessRule;
  /** JSON text of an object. */
  readonly metadata: string | undefined;
  readonly sizeBytes: number;
  readonly createdMs: number;
  readonly updatedMs: number;
}

/** A program with its document's JSON text. */
export interface WholeProgram {
  readonly record: ProgramRecord;
  readonly data: string | undefined;
}

/** A program in a list. */
export type ProgramEntry = Pick<
  ProgramRecord,
  "address" | "name" | "encoding" | "sizeBytes" | "createdMs" | "updatedMs"
> & {
  readonly owner: string;
};

/** A top-level field. */
export interface Field {
  readonly type: JsonType;
  /** JSON text of the value. */
  readonly value: string;
}

/** A top-level field for one of its items: of a large array just the chunk that holds the item. */
export interface FieldPortion extends Field {
  /** Which items `value` has, where it has not all of them. */
  readonly chunk?: { readonly firstItem: number; readonly arrayItems: number };
}

/** Reads of stored programs; undefined for one that does not exist or was deleted. */
export interface Programs {
  /** With the document's JSON text. */
  findWithData(address: string): Promise<WholeProgram | undefined>;
  /** With the names of the top-level fields, in the document's order. */
  findWithFieldNames(address: string): Promise<{ record: ProgramRecord; names: string[] } | undefined>;
  /** With one top-level field. */
  findWithField(
    address: string,
    name: string,
  ): Promise<{ record: ProgramRecord; field: Field | undefined } | undefined>;
  /** With what holds one item of a top-level field. */
  findWithItem(
    address: string,
    name: string,
    index: number,
  ): Promise<{ record: ProgramRecord; field: FieldPortion | undefined } | undefined>;
  /** Programs of an owner that the caller may read, newest first. */
  listByOwner(owner: string, identity: string | undefined, page: ListPage): Promise<ProgramEntry[]>;
  /** Programs by name that the caller may read, newest first. */
  search(query: string, exact: boolean, identity: string | undefined, page: ListPage): Promise<ProgramEntry[]>;
  /** How many were ever made: those that were deleted, too. */
  createdCount(): Promise<number>;
}

/** What a program holds: the text of a document, or base64 as a JSON string; undefined when it holds nothing. */
export type ProgramContent =
  | {
      readonly encoding: "json" | "binary";
      /** Type of the document; binary when it is no JSON. */
      readonly type: JsonType | "binary";
      readonly text: string;
      readonly sizeBytes: number;
    }
  | undefined;

/** Who may read and write a program, and what comes with each such rule. */
export interface NewAccess {
  readonly access: AccessRule;
  /** 64 hex digits that only those can know who may read the transaction: see {@link ProgramParts.blinding}. */
  readonly blinding: string;
}

/** A program that is made. */
export interface NewProgram extends NewAccess {
  readonly address: string;
  readonly name: string;
  readonly content: ProgramContent;
  /** JSON text of an object. */
  readonly metadata: string | undefined;
}

/** A program that may be changed. */
export type ChangeableProgram = Pick<ProgramRecord, "address" | "encoding" | "type" | "access" | "sizeBytes"> & {
  /** Whether its document is kept in parts. */
  readonly inParts: boolean;
};

/** A document that is an object, as its program's row tells of it. */
export type DocumentState = Pick<ChangeableProgram, "sizeBytes" | "inParts">;

/** An operation that will be executed, and by whom. */
export interface ExpectedOperation {
  readonly operation: StorageOperation;
  readonly by: Pick<TransactionBody, "sender" | "nonce">;
}

/** What is hashed of an object, and the pages of the tree of its fields as texts, which go from thread to thread as they are. */
export interface GrownDocument extends ObjectParts {
  /** For saveTexts of the tree's page store. */
  readonly pages: readonly string[];
}

/** Grows the tree of a document, which is the JSON text of an object, for the program at an address. */
export type GrowDocument = (address: string, text: string) => Promise<GrownDocument>;

/** How leaves are read. */
export interface LeavesToRead {
  /** Changes are in the database, as they are where this is left out; what is held of them in memory is looked at before. */
  readonly stored?: Promise<void>;
  /** Here, where it is left out. */
  readonly grow?: GrowDocument;
}

/** Changes of stored programs, in the transaction of a block. Times are those of the block. */
export interface ProgramChanges {
  /** Reads ahead what operations that come will look at; whatever it does not, is read when they do. */
  expect(operations: readonly ExpectedOperation[]): Promise<void>;
  /** Undefined for one that does not exist or was deleted. */
  find(address: string, work: Work): Promise<ChangeableProgram | undefined>;
  /** Whether there is or was a program at an address. */
  wasMade(address: string): Promise<boolean>;
  insert(program: NewProgram, timeMs: number, work: Work): Promise<void>;
  replaceContent(program: ChangeableProgram, content: ProgramContent, timeMs: number, work: Work): Promise<void>;
  /** Changes a document, whose rows these are, and stores what its program's row tells of it. */
  changeDocument(
    address: string,
    change: (rows: DocumentRows) => Promise<DocumentState>,
    timeMs: number,
    work: Work,
  ): Promise<void>;
  setAccess(address: string, access: NewAccess, timeMs: number, work: Work): Promise<void>;
  delete(program: ChangeableProgram, timeMs: number, work: Work): Promise<void>;
  /** Leaves of the state tree for the programs that were touched, after all changes. */
  leaves(how?: LeavesToRead): Promise<LeafChange[]>;
}

/** What the row of a field holds beside its name. */
export interface FieldColumns {
  readonly type: JsonType;
  /** Text before the value; empty where the document is kept as one text. */
  readonly before: string;
  /** The value, or what follows its chunks. */
  readonly value: string;
  /** Bytes of the whole value; 0 where the document is kept as one text. */
  readonly sizeBytes: number;
  /** How many items the chunks of the value hold, 0 when it is no array; undefined for a value without chunks. */
  readonly items: number | undefined;
}

/** Row of a field. */
export interface FieldRow extends FieldColumns {
  /** Its place among the fields, which stays; a new field has the highest. */
  readonly position: number;
  readonly name: string;
}

/** A row of a chunk, without its text. */
export interface ChunkEntry {
  /** Its place among the chunks of its field; there is room between them. */
  readonly position: number;
  readonly items: number;
  readonly sizeBytes: number;
}

/** The rows of one document. What is done here is counted as work. */
export interface DocumentRows {
  /** The whole document, however it is kept; undefined when there is none. */
  whole(state: DocumentState): Promise<string | undefined>;
  /** The document that is kept as one text, or what follows the last value of one in parts. */
  text(): Promise<string>;
  /** Stores either. */
  saveText(text: string): Promise<void>;
  field(name: string): Promise<FieldRow | undefined>;
  fieldAfter(position: number): Promise<FieldRow | undefined>;
  /** The highest one below `below`, or of all; undefined without fields. */
  lastPosition(below?: number): Promise<number | undefined>;
  /** Inserts fields that have these positions and the ones after it. */
  insertFields(position: number, fields: readonly (FieldColumns & { readonly name: string })[]): Promise<void>;
  saveField(field: FieldRow): Promise<void>;
  deleteField(field: Pick<FieldRow, "position" | "name">): Promise<void>;
  /** The chunks of a field in their order. */
  chunks(field: number): Promise<ChunkEntry[]>;
  lastChunk(field: number): Promise<ChunkEntry>;
  chunkText(field: number, position: number): Promise<string>;
  /** Text of all chunks of a field. */
  chunkTexts(field: number): Promise<string>;
  insertChunks(field: number, chunks: readonly (Chunk & { readonly position: number })[]): Promise<void>;
  saveChunk(field: number, position: number, chunk: Chunk): Promise<void>;
  /** Puts text before or after that of a chunk, with so many items. */
  extendChunk(field: number, chunk: ChunkEntry, more: { readonly [side in "before" | "after"]?: Chunk }): Promise<void>;
  deleteChunk(field: number, position: number): Promise<void>;
  /** Deletes all chunks of a field, whose value has so many bytes. */
  deleteChunks(field: number, sizeBytes: number): Promise<void>;
  /** Deletes all rows. */
  clear(state: DocumentState): Promise<void>;
  /** The rows of this whole document are stored. */
  wrote(text: string): void;
}

/** A name in one case, so that every database engine finds the same. */
export function foldName(name: string): string {
  return name.toLowerCase();
}
