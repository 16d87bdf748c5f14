/** Storage programs as they are stored: what is read of them, and what blocks change. */
import type { AccessRule } from "./access.js";
import type { JsonType } from "./document.js";
import type { Page } from "./paging.js";

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
  /** Programs of an owner that the caller may read, newest first. */
  listByOwner(owner: string, identity: string | undefined, page: Page): Promise<ProgramEntry[]>;
  /** Programs by name that the caller may read, newest first. */
  search(query: string, exact: boolean, identity: string | undefined, page: Page): Promise<ProgramEntry[]>;
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

/** A program that is made. */
export interface NewProgram {
  readonly address: string;
  readonly name: string;
  readonly access: AccessRule;
  readonly content: ProgramContent;
  /** JSON text of an object. */
  readonly metadata: string | undefined;
}

/** A program that may be changed. */
export type ChangeableProgram = Pick<ProgramRecord, "address" | "encoding" | "type" | "access">;

/** A document that is an object, one of whose fields changed. */
export interface ChangedDocument {
  /** JSON text of the whole document. */
  readonly text: string;
  readonly sizeBytes: number;
  /** Name of the field. */
  readonly field: string;
}

/** Changes of stored programs, in the transaction of a block. Times are those of the block. */
export interface ProgramChanges {
  /** Undefined for one that does not exist or was deleted. */
  find(address: string): Promise<ChangeableProgram | undefined>;
  /** JSON text of a program's document; undefined when it holds nothing. */
  document(address: string): Promise<string | undefined>;
  insert(program: NewProgram, timeMs: number): Promise<void>;
  replaceContent(address: string, content: ProgramContent, timeMs: number): Promise<void>;
  /** Stores a document one of whose fields was set: a new field stands behind the others. */
  setField(address: string, document: ChangedDocument & { readonly value: string }, timeMs: number): Promise<void>;
  /** Stores a document one of whose fields was deleted. */
  deleteField(address: string, document: ChangedDocument, timeMs: number): Promise<void>;
  setAccess(address: string, rule: AccessRule, timeMs: number): Promise<void>;
  delete(address: string, timeMs: number): Promise<void>;
}

/** A name in one case, so that every database engine finds the same. */
export function foldName(name: string): string {
  return name.toLowerCase();
}
