/**
 * Checks what the database holds of a program against the checksums that its rows were stored with, and puts documents
 * together that are kept in parts. A row that is missing shows as bytes or items that are missing.
 */
import { CorruptionError } from "../../base/errors/corruption.js";
import { yieldToEventLoop } from "../../base/async/yielding.js";
import {
  type ChunkColumns,
  type FieldColumns,
  hashChunkRow,
  hashDocumentRow,
  hashFieldRow,
  hashProgramEntry,
  hashProgramRest,
  type ProgramEntryColumns,
  type ProgramRestColumns,
} from "../../db/rows/row-hashes.js";
import type { AccessRule } from "./access.js";
import type { JsonType } from "../documents/json-text.js";
import type { ProgramRecord } from "./programs.js";

/** What lists tell of a program, with its checksum. */
export type EntryRow = ProgramEntryColumns & { readonly entry_hash: string };

/** A program's own row. */
export type ProgramRow = EntryRow & ProgramRestColumns & { readonly rest_hash: string };

/** Row of a field. */
export type FieldRecord = FieldColumns & { readonly row_hash: string };

/** Row of a chunk. */
export type ChunkRecord = ChunkColumns & { readonly row_hash: string };

/** Columns of a program's own row, for a query. */
export const entryColumns = [
  ...["address", "owner", "name", "encoding", "mode", "size_bytes", "created_ms", "updated_ms", "deleted"],
  "entry_hash",
];
export const programColumns = [...entryColumns, "type", "access", "metadata", "in_parts", "blinding", "rest_hash"];

/** What of a program is damaged. */
export type ProgramPart = "row" | "document" | "field" | "chunk of a field";

export function damaged(address: string, part: ProgramPart): CorruptionError {
  return new CorruptionError(
    `The storage program ${address} in the database is not what was stored: its ${part}; restore the database from a backup, or let the node follow the chain anew.`,
  );
}

/** Checks what lists tell of a program. Throws DamageError. */
export function checkEntry<Row extends EntryRow>(row: Row): Row {
  if (row.entry_hash !== hashProgramEntry(row)) {
    throw damaged(row.address, "row");
  }
  return row;
}

/**
 * Checks a program's own row.
 *
 * @param address what was asked for.
 * @throws DamageError
 */
export function checkProgram<Row extends ProgramRow>(address: string, row: Row): Row {
  if (row.address !== address || row.entry_hash !== hashProgramEntry(row) || row.rest_hash !== hashProgramRest(row)) {
    throw damaged(address, "row");
  }
  return row;
}

/** A row that was checked, as the services speak of it. */
export function toRecord(row: ProgramRow): ProgramRecord {
  const { allowed, blacklisted, groups } = JSON.parse(row.access) as Omit<AccessRule, "owner" | "mode">;
  return {
    address: row.address,
    name: row.name,
    encoding: row.encoding as ProgramRecord["encoding"],
    type: row.type as ProgramRecord["type"],
    access: { owner: row.owner, mode: row.mode as AccessRule["mode"], allowed, blacklisted, groups },
    metadata: row.metadata ?? undefined,
    sizeBytes: row.size_bytes,
    createdMs: row.created_ms,
    updatedMs: row.updated_ms,
  };
}

/** The text that a document's row holds. */
export interface TextRow {
  readonly data: string | null;
  readonly row_hash: string | null;
}

/**
 * Checks the text of a document, or what follows the last value of one in parts; undefined where there is no row.
 *
 * @throws DamageError
 */
export function checkText(address: string, { data, row_hash }: TextRow): string | undefined {
  if (data === null && row_hash === null) {
    return undefined;
  }
  if (data === null || row_hash !== hashDocumentRow({ address, data })) {
    throw damaged(address, "document");
  }
  return data;
}

/**
 * Checks the text of a document that is kept as one.
 *
 * @throws DamageError also when there is none, and the program's row says that there is.
 */
export function checkDocument(row: ProgramRow, text: TextRow): string | undefined {
  const data = checkText(row.address, text);
  const isRight =
    data === undefined
      ? row.type === "null" && row.size_bytes === 0
      : row.encoding === "binary" || Buffer.byteLength(data) === row.size_bytes;
  if (!isRight) {
    throw damaged(row.address, "document");
  }
  return data;
}

/** Checks the row of a field. Throws DamageError. */
export function checkField<Row extends FieldRecord>(address: string, row: Row): Row {
  if (row.address !== address || row.row_hash !== hashFieldRow(row)) {
    throw damaged(address, "field");
  }
  return row;
}

/** Checks the row of a chunk. Throws DamageError. */
export function checkChunk<Row extends ChunkRecord>(address: string, row: Row): Row {
  if (row.address !== address || row.row_hash !== hashChunkRow(row)) {
    throw damaged(address, "chunk of a field");
  }
  return row;
}

/** The chunks of {@link ChunkRecord}s that a query gives as JSON. Throws DamageError. */
export function readChunks(address: string, json: string): ChunkRecord[] {
  const rows = parse(address, json, "chunk of a field") as [number, number, number, number, string, string][];
  return rows.map(([field, position, items, size_bytes, text, row_hash]) =>
    checkChunk(address, { address, field, position, items, size_bytes, text, row_hash }),
  );
}

/**
 * The whole value of a field.
 *
 * @param chunks those of the field, in their order; none where the value is in its row.
 * @throws DamageError
 */
export function joinValue(address: string, field: FieldRecord, chunks: readonly ChunkRecord[]): string {
  if (field.items === null) {
    return field.value;
  }
  const value = chunks.map(({ text }) => text).join("") + field.value;
  const items = chunks.reduce((sum, chunk) => sum + chunk.items, 0);
  if (items !== field.items || Buffer.byteLength(value) !== field.size_bytes) {
    throw damaged(address, "chunk of a field");
  }
  return value;
}

/** What a document in parts is put together of. */
export interface Deps extends TextRow {
  /** JSON, in their order. */
  readonly fields: string;
  readonly chunks: string;
}

/** A document that was put together. */
export interface JoinedParts {
  readonly text: string;
  /** Of its fields, in its order. */
  readonly names: readonly string[];
}

/** A {@link FieldRecord} as fieldsOf gives it. */
type FieldValues = readonly [number, string, string, number | null, number, string, string, string];

function readField(address: string, values: FieldValues): FieldRecord {
  const [position, name_json, type, items, size_bytes, text_before, value, row_hash] = values;
  return checkField(address, { address, position, name_json, type, items, size_bytes, text_before, value, row_hash });
}

/** The fields of {@link FieldRecord}s that a query gives as JSON. Throws DamageError. */
export function readFields(address: string, json: string): FieldRecord[] {
  return (parse(address, json, "field") as FieldValues[]).map((values) => readField(address, values));
}

/** Rows that are checked before others have their turn. */
const portionRows = 1_000;

/** The rows of a document in parts, in their order; they were checked, or are when they are taken. */
export interface RowsInParts {
  readonly fields: Iterable<FieldRecord>;
  readonly chunks: readonly ChunkRecord[];
  /** The text after the last value. */
  readonly tail: string | undefined;
}

/**
 * Puts a document in parts together.
 *
 * @param sizeBytes what it must have.
 * @throws DamageError
 */
export async function joinRows(
  address: string,
  { fields, chunks, tail }: RowsInParts,
  sizeBytes: number,
): Promise<JoinedParts> {
  const names: string[] = [];
  let text = "";
  let nextChunk = 0;
  for (const field of fields) {
    if (names.length % portionRows === portionRows - 1) {
      await yieldToEventLoop();
    }
    const from = nextChunk;
    while (chunks[nextChunk]?.field === field.position) {
      nextChunk++;
    }
    names.push(JSON.parse(field.name_json) as string);
    text += field.text_before + joinValue(address, field, chunks.slice(from, nextChunk));
  }
  text += tail ?? "";
  if (nextChunk !== chunks.length || Buffer.byteLength(text) !== sizeBytes) {
    throw damaged(address, "document");
  }
  return { text, names };
}

/** The same of rows that a query gives as JSON. */
export async function joinParts(address: string, deps: Deps, sizeBytes: number): Promise<JoinedParts> {
  const values = parse(address, deps.fields, "field") as FieldValues[];
  const rows = { chunks: readChunks(address, deps.chunks), tail: checkText(address, deps) };
  return await joinRows(address, { ...rows, fields: checkEach(address, values) }, sizeBytes);
}

function* checkEach(address: string, fields: readonly FieldValues[]): Generator<FieldRecord> {
  for (const values of fields) {
    yield readField(address, values);
  }
}

/** JSON that the database made of rows. Throws DamageError where it is none. */
export function parse(address: string, json: string, part: ProgramPart): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    throw damaged(address, part);
  }
}

/** A field as the services speak of it. */
export function typeOf(field: FieldRecord): JsonType {
  return field.type as JsonType;
}
