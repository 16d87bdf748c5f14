/**
 * Checks stored programs against the checksums of their rows, and joins documents that are stored in parts. A missing
 * row shows as missing bytes or items.
 */
import { CorruptionError } from "../../base/errors/corruption.js";
import type { Flow } from "../../base/async/fair-scheduler.js";
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

/** Columns of a program's row that lists return, with their checksum. */
export type EntryRow = ProgramEntryColumns & { readonly entry_hash: string };

export type ProgramRow = EntryRow & ProgramRestColumns & { readonly rest_hash: string };

export type FieldRecord = FieldColumns & { readonly row_hash: string };

export type ChunkRecord = ChunkColumns & { readonly row_hash: string };

export const entryColumns = [
  ...(["address", "owner", "name", "encoding", "mode", "size_bytes", "created_ms", "updated_ms", "deleted"] as const),
  "entry_hash" as const,
];
export const programColumns = [...entryColumns, "type", "access", "metadata", "in_parts", "blinding", "rest_hash"];

export type ProgramPart = "row" | "document" | "field" | "chunk of a field";

export function corruptionOf(address: string, part: ProgramPart): CorruptionError {
  return new CorruptionError(
    `The storage program ${address} in the database is corrupt: its ${part}; restore the database from a backup, or sync the node again.`,
  );
}

/** @throws CorruptionError */
export function checkEntry<Row extends EntryRow>(row: Row): Row {
  if (row.entry_hash !== hashProgramEntry(row)) {
    throw corruptionOf(row.address, "row");
  }
  return row;
}

/** @throws CorruptionError also if the row is not that of the requested address. */
export function checkProgram<Row extends ProgramRow>(address: string, row: Row): Row {
  if (row.address !== address || row.entry_hash !== hashProgramEntry(row) || row.rest_hash !== hashProgramRest(row)) {
    throw corruptionOf(address, "row");
  }
  return row;
}

/** Converts a checked row to the form that the services use. */
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

/** Text in the document's own row. */
export interface TextRow {
  readonly data: string | null;
  readonly row_hash: string | null;
}

/**
 * Checks the text in a document's row: the document, or the text after the last value of a document in parts. Returns
 * undefined if there is no row.
 *
 * @throws CorruptionError
 */
export function checkText(address: string, { data, row_hash }: TextRow): string | undefined {
  if (data === null && row_hash === null) {
    return undefined;
  }
  if (data === null || row_hash !== hashDocumentRow({ address, data })) {
    throw corruptionOf(address, "document");
  }
  return data;
}

/** @throws CorruptionError also if the document is missing although the program's row has a size or a type for it. */
export function checkDocument(row: ProgramRow, text: TextRow): string | undefined {
  const data = checkText(row.address, text);
  const isValid =
    data === undefined
      ? row.type === "null" && row.size_bytes === 0
      : row.encoding === "binary" || Buffer.byteLength(data) === row.size_bytes;
  if (!isValid) {
    throw corruptionOf(row.address, "document");
  }
  return data;
}

/** @throws CorruptionError */
export function checkField<Row extends FieldRecord>(address: string, row: Row): Row {
  if (row.address !== address || row.row_hash !== hashFieldRow(row)) {
    throw corruptionOf(address, "field");
  }
  return row;
}

/** @throws CorruptionError */
export function checkChunk<Row extends ChunkRecord>(address: string, row: Row): Row {
  if (row.address !== address || row.row_hash !== hashChunkRow(row)) {
    throw corruptionOf(address, "chunk of a field");
  }
  return row;
}

/** @throws CorruptionError */
export function readChunks(address: string, json: string): ChunkRecord[] {
  const rows = parse(address, json, "chunk of a field") as [number, number, number, number, string, string][];
  return rows.map(([field, position, items, size_bytes, text, row_hash]) =>
    checkChunk(address, { address, field, position, items, size_bytes, text, row_hash }),
  );
}

/** @throws CorruptionError if items or bytes are missing. Ignores the chunks if the value is in the field's row. */
export function joinValue(address: string, field: FieldRecord, chunks: readonly ChunkRecord[]): string {
  if (field.items === null) {
    return field.value;
  }
  const value = chunks.map(({ text }) => text).join("") + field.value;
  const items = chunks.reduce((sum, chunk) => sum + chunk.items, 0);
  if (items !== field.items || Buffer.byteLength(value) !== field.size_bytes) {
    throw corruptionOf(address, "chunk of a field");
  }
  return value;
}

/** Rows of a document in parts, as a query returns them. */
export interface PartsRow extends TextRow {
  /** JSON array of texts, each a JSON array of {@link portionRows} fields at most, in order. */
  readonly fields: string;
  /** JSON array of the chunks of all fields, in order. */
  readonly chunks: string;
}

/**
 * Reads the fields that a query returned as JSON. Checks each field as late as possible, so that the caller can yield
 * to the event loop in between.
 *
 * @throws CorruptionError
 */
export function* readFields(address: string, json: string): Generator<FieldRecord> {
  type Values = readonly [number, string, string, number | null, number, string, string, string];
  for (const portion of parse(address, json, "field") as string[]) {
    for (const values of parse(address, portion, "field") as Values[]) {
      const [position, name_json, type, items, size_bytes, text_before, value, row_hash] = values;
      yield checkField(address, {
        address,
        position,
        name_json,
        type,
        items,
        size_bytes,
        text_before,
        value,
        row_hash,
      });
    }
  }
}

/** Number of fields that are read together. Each portion is a batch of long work. */
export const portionRows = 1_000;

/** Rows of a document in parts, in order. They are already checked, or are checked during iteration. */
interface RowsInParts {
  readonly fields: Iterable<FieldRecord>;
  readonly chunks: readonly ChunkRecord[];
  /** Text after the last value. */
  readonly tail: string | undefined;
}

/**
 * @param work long work of which the batches are a part. Default: that of the node itself.
 * @throws CorruptionError if the joined text has another size, or if chunks belong to no field.
 */
export async function joinRows(address: string, { fields, chunks, tail }: RowsInParts, sizeBytes: number, work?: Flow) {
  let text = "";
  let [count, nextChunk] = [0, 0];
  for (const field of fields) {
    if (++count % portionRows === 0) {
      await yieldToEventLoop(work);
    }
    const from = nextChunk;
    while (chunks[nextChunk]?.field === field.position) {
      nextChunk++;
    }
    text += field.text_before + joinValue(address, field, chunks.slice(from, nextChunk));
  }
  text += tail ?? "";
  if (nextChunk !== chunks.length || Buffer.byteLength(text) !== sizeBytes) {
    throw corruptionOf(address, "document");
  }
  return text;
}

/** Joins a document from rows that a query returned as JSON, and checks them, as {@link joinRows} does. */
export async function joinParts(address: string, parts: PartsRow, sizeBytes: number, work?: Flow) {
  const fields = readFields(address, parts.fields);
  const rows = { fields, chunks: readChunks(address, parts.chunks), tail: checkText(address, parts) };
  return await joinRows(address, rows, sizeBytes, work);
}

/** @throws CorruptionError if JSON that the database built from rows is not JSON. */
export function parse(address: string, json: string, part: ProgramPart): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    throw corruptionOf(address, part);
  }
}

export function typeOf(field: FieldRecord): JsonType {
  return field.type as JsonType;
}
