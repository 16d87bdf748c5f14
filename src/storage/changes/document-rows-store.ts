/** Rows of one document: its text, one row for each field, and one row for each chunk of a large field. */
import { hashChunkRow, hashDocumentRow, hashFieldRow } from "../../db/rows/row-hashes.js";
import type { Chunk } from "../documents/document-parts.js";
import type { JsonType } from "../documents/json-text.js";
import type { DocumentState } from "../programs/programs.js";
import { type ChunkRecord, type FieldRecord, joinRows } from "../programs/stored-program.js";
import type { DirtyProgram } from "../stores/program-state-store.js";
import type { ProgramTables } from "../stores/program-tables-store.js";
import type { CostCounter } from "./cost.js";

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

export interface NewField extends FieldColumns {
  readonly name: string;
}

export interface NewChunk extends Chunk {
  readonly position: number;
}

/** Row of a chunk, without its text. */
export interface ChunkEntry {
  /** Position among the chunks of the field. Positions have gaps, for chunks that are inserted later. */
  readonly position: number;
  readonly items: number;
  readonly sizeBytes: number;
}

/**
 * Rows of one document in the write buffer of a block. Each access adds to the cost of the operation, and each change
 * is recorded for the state tree.
 */
export class DocumentRows {
  /** @param onRollback registers a function that runs if the current transaction is rolled back. */
  constructor(
    private readonly tables: ProgramTables,
    private readonly address: string,
    private readonly cost: CostCounter,
    private readonly dirty: DirtyProgram,
    private readonly onRollback: (undo: () => void) => void,
  ) {}

  /** Joins the full text of a document that is stored in parts. */
  async joinedText(sizeBytes: number): Promise<string> {
    const { documents, fields, chunks } = this.tables;
    const rows = {
      fields: await fields.list(this.address),
      chunks: await chunks.list(this.address),
      tail: (await documents.get(this.address))?.data,
    };
    const text = await joinRows(this.address, rows, sizeBytes);
    this.cost.addText(text);
    return text;
  }

  /** Returns the document that is stored as one text; for a document in parts, the text after the last value. */
  async text(): Promise<string> {
    const { data } = (await this.tables.documents.get(this.address))!;
    this.cost.addRow(data);
    return data;
  }

  /** Stores the text that {@link DocumentRows.text} returns. */
  async saveText(data: string): Promise<void> {
    const { address } = this;
    const { documents } = this.tables;
    this.dirty.text = undefined;
    this.cost.addRow(data);
    const row = { address, data, row_hash: hashDocumentRow({ address, data }) };
    if ((await documents.get(address)) === undefined) {
      documents.insert(row);
    } else {
      documents.put(row);
    }
  }

  async field(name: string): Promise<FieldRow | undefined> {
    const row = await this.tables.fields.find(this.address, "name_json", JSON.stringify(name));
    return row && this.#toField(row);
  }

  async fieldAfter(position: number): Promise<FieldRow | undefined> {
    const { fields } = this.tables;
    const next = await fields.seek(this.address, [], "first", position);
    return next === undefined ? undefined : this.#toField((await fields.get(this.address, next))!);
  }

  /** Returns the highest position of a field, or the highest below `below`; undefined if there is no such field. */
  async lastPosition(below?: number): Promise<number | undefined> {
    const position = await this.tables.fields.seek(this.address, [], "last", below);
    this.cost.addRows(position === undefined ? 0 : 1);
    return position;
  }

  /** Inserts fields at consecutive positions, starting at `position`. */
  insertFields(position: number, added: readonly NewField[]): void {
    for (const [i, field] of added.entries()) {
      this.tables.fields.insert(this.#toFieldRecord(position + i, field));
    }
  }

  saveField(field: FieldRow): void {
    this.tables.fields.put(this.#toFieldRecord(field.position, field));
    if (field.items !== undefined) {
      // The field's chunks are read and hashed for the state tree, once in a block. That costs an eighth of writing
      // them.
      this.cost.addText(Math.ceil(field.sizeBytes / 8));
    }
  }

  deleteField({ position, name }: Pick<FieldRow, "position" | "name">): void {
    this.#markField(name);
    this.cost.addRows(1);
    this.tables.fields.remove(this.address, position);
  }

  /** Returns the chunks of a field, in order. */
  async chunks(field: number): Promise<ChunkEntry[]> {
    const columns = ["field", "position", "items", "size_bytes"] as const;
    const entries = await this.tables.chunks.list(this.address, [field], columns);
    this.cost.addRows(entries.length);
    return entries.map(toEntry);
  }

  async lastChunk(field: number): Promise<ChunkEntry> {
    const position = await this.tables.chunks.seek(this.address, [field], "last");
    this.cost.addRows(1);
    return toEntry(await this.#chunk(field, position!));
  }

  async chunkText(field: number, position: number): Promise<string> {
    const { text } = await this.#chunk(field, position);
    this.cost.addRow(text);
    return text;
  }

  /** Returns the concatenated text of all chunks of a field. */
  async chunkTexts(field: number): Promise<string> {
    const text = (await this.tables.chunks.list(this.address, [field])).map((chunk) => chunk.text).join("");
    this.cost.addText(text);
    return text;
  }

  insertChunks(field: number, added: readonly NewChunk[]): void {
    for (const { position, ...chunk } of added) {
      this.cost.addRow(chunk.text);
      this.tables.chunks.insert(this.#toChunkRecord(field, position, chunk));
    }
  }

  saveChunk(field: number, position: number, chunk: Chunk): void {
    this.cost.addRow(chunk.text);
    this.tables.chunks.put(this.#toChunkRecord(field, position, chunk));
  }

  /** Adds text and items before or after those of a chunk. */
  async extendChunk(
    field: number,
    { position, sizeBytes }: ChunkEntry,
    { before = emptyChunk, after = emptyChunk }: { readonly before?: Chunk; readonly after?: Chunk },
  ): Promise<void> {
    this.cost.addRow(before.text);
    this.cost.addText(after.text);
    this.cost.addText(sizeBytes);
    // The checksum covers the full text of the chunk, so the text must be read.
    const own = await this.#chunk(field, position);
    const text = before.text + own.text + after.text;
    const items = before.items + own.items + after.items;
    this.tables.chunks.put(this.#toChunkRecord(field, position, { text, items }));
  }

  deleteChunk(field: number, position: number): void {
    this.cost.addRows(1);
    this.tables.chunks.remove(this.address, field, position);
  }

  /** Deletes all chunks of a field. The size of the field's value is added to the cost. */
  async deleteChunks(field: number, sizeBytes: number): Promise<void> {
    this.cost.addText(sizeBytes);
    for (const { position } of await this.tables.chunks.list(this.address, [field], ["field", "position"])) {
      this.deleteChunk(field, position);
    }
  }

  /** Deletes all rows of the document. */
  async clear({ sizeBytes, inParts }: DocumentState): Promise<void> {
    const { documents, fields, chunks } = this.tables;
    this.#markComplete(undefined);
    this.dirty.hadTree ||= inParts;
    this.cost.addText(sizeBytes);
    for (const table of inParts ? [documents, fields, chunks] : [documents, fields]) {
      this.cost.addRows(await table.clear(this.address));
    }
  }

  /** Records that all rows of a document in parts were stored from this text. */
  onWritten(text: string): void {
    this.#markComplete(text);
    // After a rollback the rows are not those of this text, so the text must not be used.
    this.onRollback(() => (this.dirty.text = undefined));
  }

  #markComplete(text: string | undefined): void {
    this.dirty.isComplete = true;
    this.dirty.text = text;
    this.dirty.fields.clear();
  }

  #markField(name: string): void {
    this.dirty.text = undefined;
    if (!this.dirty.isComplete) {
      this.dirty.fields.add(name);
    }
  }

  #toField(row: FieldRecord): FieldRow {
    const { position, text_before: before, value, size_bytes: sizeBytes, items } = row;
    this.cost.addRow(before);
    this.cost.addText(value);
    const name = JSON.parse(row.name_json) as string;
    return { position, name, type: row.type as JsonType, before, value, sizeBytes, items: items ?? undefined };
  }

  #toFieldRecord(position: number, field: NewField): FieldRecord {
    const { name, type, before, value, sizeBytes: size_bytes, items = null } = field;
    this.#markField(name);
    this.cost.addRow(before);
    this.cost.addText(value);
    const { address } = this;
    const name_json = JSON.stringify(name);
    // A literal without a spread: a document may have 90,000 fields.
    const row = { address, position, name_json, type, items, size_bytes, text_before: before, value, row_hash: "" };
    row.row_hash = hashFieldRow(row);
    return row;
  }

  async #chunk(field: number, position: number): Promise<ChunkRecord> {
    return (await this.tables.chunks.get(this.address, field, position))!;
  }

  #toChunkRecord(field: number, position: number, { text, items }: Chunk): ChunkRecord {
    const row = { address: this.address, field, position, items, size_bytes: Buffer.byteLength(text), text };
    return { ...row, row_hash: hashChunkRow(row) };
  }
}

const emptyChunk: Chunk = { text: "", items: 0 };

function toEntry({ position, items, size_bytes: sizeBytes }: ChunkRecord): ChunkEntry {
  return { position, items, sizeBytes };
}
