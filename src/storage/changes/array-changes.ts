/** Changes arrays that are stored in chunks. Each change reads and writes only the chunks that it affects. */
import { deleteItem, itemsOf, type Range, setItem } from "../documents/document.js";
import { chunkLength, eachChunk, maxChunkLength } from "../documents/document-parts.js";
import { splitSpace } from "../documents/json-text.js";
import type { ChunkEntry, DocumentRows, FieldColumns, FieldRow } from "./document-rows-store.js";
import { chunkGap, writeValue } from "./document-writing.js";

/** Change of an array in a field. */
export type ItemChange =
  | { readonly kind: "append"; readonly value: string }
  | { readonly kind: "set"; readonly index: number; readonly value: string }
  | { readonly kind: "delete"; readonly index: number };

/** Position of an item in the chunks of an array. */
interface FoundItem {
  /** All chunks of the array, in order. */
  readonly chunks: readonly ChunkEntry[];
  /** Index of the chunk that holds the item. */
  readonly at: number;
  readonly text: string;
  /** Positions of the chunk's items in its text. */
  readonly items: readonly Range[];
  /** Index of the item in its chunk. */
  readonly index: number;
}

/** Array in a field, stored in chunks. */
export class ChunkedArray {
  /** @param checkGrowth called with the growth of the array in bytes, before any change; may throw to reject it. */
  constructor(
    private readonly rows: DocumentRows,
    private readonly field: FieldRow & { readonly items: number },
    private readonly checkGrowth: (bytes: number) => void,
  ) {}

  /** Changes the array, which must have the item. Returns the new columns of the field's row. */
  async change(change: ItemChange): Promise<FieldColumns> {
    if (change.kind === "append") {
      return await this.#append(change.value);
    }
    const found = await this.#find(change.index);
    return await (change.kind === "set" ? this.#set(found, change.value) : this.#remove(found));
  }

  /** Appends an item: to the last chunk if it has capacity, otherwise as a new chunk. */
  async #append(value: string): Promise<FieldColumns> {
    const { rows, field } = this;
    const { lead, core, trail } = splitSpace(value);
    const chunk = { text: `,${lead}${core}`, items: 1 };
    const addedBytes = 1 + Buffer.byteLength(value);
    this.checkGrowth(addedBytes);
    const last = await rows.lastChunk(field.position);
    if (last.sizeBytes + addedBytes <= chunkLength) {
      await rows.extendChunk(field.position, last, { after: chunk });
    } else {
      rows.insertChunks(field.position, [{ position: last.position + chunkGap, ...chunk }]);
    }
    return { ...field, items: field.items + 1, sizeBytes: field.sizeBytes + addedBytes, value: trail + field.value };
  }

  async #find(index: number): Promise<FoundItem> {
    const chunks = await this.rows.chunks(this.field.position);
    let [at, first] = [0, 0];
    while (index >= first + chunks[at]!.items) {
      first += chunks[at]!.items;
      at++;
    }
    const text = await this.rows.chunkText(this.field.position, chunks[at]!.position);
    return { chunks, at, text, items: itemsOf(text), index: index - first };
  }

  async #set({ chunks, at, text, items, index }: FoundItem, value: string): Promise<FieldColumns> {
    const { rows, field } = this;
    const { start, end } = items[index]!;
    const addedBytes = Buffer.byteLength(value) - Buffer.byteLength(text.slice(start, end));
    this.checkGrowth(addedBytes);
    // A chunk ends with its last item, so white space after that item moves to the next chunk or to the field's row.
    const { lead, core, trail } = splitSpace(value);
    const isLast = index === items.length - 1;
    const after = isLast ? trail : "";
    const next = chunks[at + 1];
    if (after !== "" && next !== undefined) {
      await rows.extendChunk(field.position, next, { before: { text: after, items: 0 } });
    }
    await this.#save(chunks, at, setItem(text, items, index, isLast ? lead + core : value), items.length);
    const sizeBytes = field.sizeBytes + addedBytes;
    return { ...field, sizeBytes, value: next === undefined ? after + field.value : field.value };
  }

  /** Deletes an item, with one comma. */
  async #remove({ chunks, at, text, items, index }: FoundItem): Promise<FieldColumns> {
    const { rows, field } = this;
    const { start, end } = items[index]!;
    const left = items.length - 1;
    if (index < left) {
      const changed = deleteItem(text, items, index);
      await this.#save(chunks, at, changed, left);
      const removedBytes = Buffer.byteLength(text) - Buffer.byteLength(changed);
      return { ...field, items: field.items - 1, sizeBytes: field.sizeBytes - removedBytes };
    }
    // The item is the last of its chunk. The text before it replaces the text before the first item of the next chunk.
    const previousEnd = items[index - 1]?.end ?? 0;
    const before = text.slice(previousEnd, start);
    const next = chunks[at + 1];
    let removedBytes = Buffer.byteLength(text.slice(start, end)) + before.length;
    let { value } = field;
    if (next !== undefined) {
      const nextText = await rows.chunkText(field.position, next.position);
      const from = itemsOf(nextText)[0]!.start;
      removedBytes += from - before.length;
      rows.saveChunk(field.position, next.position, { text: before + nextText.slice(from), items: next.items });
    } else if (field.items === 1) {
      removedBytes -= before.length;
      value = before + value;
    }
    await this.#save(chunks, at, text.slice(0, previousEnd), left);
    const isEmpty = field.items === 1;
    return { ...field, items: isEmpty ? undefined : field.items - 1, sizeBytes: field.sizeBytes - removedBytes, value };
  }

  /**
   * Stores a changed chunk. Splits a chunk that is too large, and merges a small one into a neighbor with enough
   * capacity.
   */
  async #save(chunks: readonly ChunkEntry[], at: number, text: string, items: number): Promise<void> {
    const { rows } = this;
    const field = this.field.position;
    const [previous, own, next] = [chunks[at - 1], chunks[at]!, chunks[at + 1]];
    if (text.length > maxChunkLength && items > 1) {
      await this.#split(text, own.position, next?.position);
      return;
    }
    const chunk = { text, items };
    const fitsInto = (other: ChunkEntry | undefined): other is ChunkEntry =>
      other !== undefined && other.sizeBytes + Buffer.byteLength(text) <= chunkLength;
    if (items === 0) {
      rows.deleteChunk(field, own.position);
    } else if (fitsInto(previous)) {
      rows.deleteChunk(field, own.position);
      await rows.extendChunk(field, previous, { after: chunk });
    } else if (fitsInto(next)) {
      rows.deleteChunk(field, own.position);
      await rows.extendChunk(field, next, { before: chunk });
    } else {
      rows.saveChunk(field, own.position, chunk);
    }
  }

  async #split(text: string, position: number, nextPosition: number | undefined): Promise<void> {
    const { rows, field } = this;
    const pieces = [...eachChunk(text)];
    const step = Math.floor(((nextPosition ?? position + pieces.length * chunkGap) - position) / pieces.length);
    const [first, ...others] = pieces;
    if (step > 0) {
      rows.saveChunk(field.position, position, first!);
      rows.insertChunks(
        field.position,
        others.map((piece, i) => ({ position: position + (i + 1) * step, ...piece })),
      );
      return;
    }
    // There is no gap left before the next position: store all chunks again, with new gaps.
    rows.saveChunk(field.position, position, { text, items: itemsOf(text).length });
    const array = (await rows.chunkTexts(field.position)) + field.value;
    await rows.deleteChunks(field.position, field.sizeBytes);
    await writeValue(rows, field.position, array);
  }
}
