/** Stored programs, as services and blocks see them. */
import type { TransactionBody } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type { StorageOperation } from "../../../gen/gatehouse/storage/v1/operation_pb.js";
import type { AccessRule } from "./access.js";
import type { ObjectParts } from "../../tree/state-format.js";
import type { JsonType } from "../documents/json-text.js";

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

export interface FullProgram {
  readonly record: ProgramRecord;
  readonly data: string | undefined;
}

export type ProgramEntry = Pick<
  ProgramRecord,
  "address" | "name" | "encoding" | "sizeBytes" | "createdMs" | "updatedMs"
> & {
  readonly owner: string;
};

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

/** Position and size of a page of a program list. */
export interface ListPage {
  readonly limit: number;
  readonly offset: number;
  /** Address of the program before the page; undefined for the first page. */
  readonly after?: string | undefined;
}

/**
 * Reader for whom a program is read. A hidden program is read with the same queries, past the same caches, as one that
 * does not exist, so that response times do not tell them apart.
 */
export interface ProgramReader {
  readonly identity: string | undefined;
}

/**
 * Reads of stored programs. The result is undefined if the program does not exist, was deleted, or is hidden from the
 * reader. Without a reader, no program is hidden.
 */
export interface Programs {
  findWithData(address: string, reader?: ProgramReader): Promise<FullProgram | undefined>;
  findWithField(
    address: string,
    name: string,
    reader?: ProgramReader,
  ): Promise<{ record: ProgramRecord; field: Field | undefined } | undefined>;
  /** Finds a program with the part of a top-level field that holds one item. */
  findWithItem(
    address: string,
    name: string,
    index: number,
    reader?: ProgramReader,
  ): Promise<{ record: ProgramRecord; field: FieldPortion | undefined } | undefined>;
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

/** Folds a name to lowercase. The database engines fold case differently, so the node does it. */
export function foldName(name: string): string {
  return name.toLowerCase();
}
