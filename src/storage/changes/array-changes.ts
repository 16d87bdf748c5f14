/** Changes arrays that are stored in chunks. Each change reads and writes only the chunks that it affects. */
import { deleteItem, itemsOf, type Range, setItem } from "../documents/document.js";
import { chunkLength, eachChunk, maxChunkLength } from "../documents/document-parts.js";
import { chunkGap, writeValue } from "./document-writing.js";
import { splitSpace } from "../documents/json-text.js";
import type { ChunkEntry, DocumentRows, FieldColumns, FieldRow } from "./document-rows-store.js";

/** Change of an array in a field. */
export type ItemChange =
  | { readonly kind: "append"; readonly value: string }
  | { readonly kind: "set"; readonly index: number; readonly value: string }
  | { readonly kind: "delete"; readonly index: number };

type ArrayRow = FieldRow & { readonly items: number };

/**
 * Changes an array.
 *
 * @param addBytes called with the growth of the array in bytes, before any change; may throw to reject the change.
 * @returns the new columns of the field's row.
 */
export async function changeChunks(
  rows: DocumentRows,
  field: ArrayRow,
  change: ItemChange,
  addBytes: (bytes: number) => void,
): Promise<FieldColumns> {
  if (change.kind === "append") {
    return await append(rows, field, change.value, addBytes);
  }
  const found = await findItem(rows, field.position, change.index);
  return await (change.kind === "set" ? set(rows, field, found, change.value, addBytes) : remove(rows, field, found));
}

/** Appends an item: to the last chunk if it has capacity, otherwise as a new chunk. */
async function append(
  rows: DocumentRows,
  field: ArrayRow,
  value: string,
  addBytes: (bytes: number) => void,
): Promise<FieldColumns> {
  const { lead, core, trail } = splitSpace(value);
  const chunk = { text: `,${lead}${core}`, items: 1 };
  const addedBytes = 1 + Buffer.byteLength(value);
  addBytes(addedBytes);
  const last = await rows.lastChunk(field.position);
  if (last.sizeBytes + addedBytes <= chunkLength) {
    await rows.extendChunk(field.position, last, { after: chunk });
  } else {
    rows.insertChunks(field.position, [{ position: last.position + chunkGap, ...chunk }]);
  }
  return { ...field, items: field.items + 1, sizeBytes: field.sizeBytes + addedBytes, value: trail + field.value };
}

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

/** Finds the chunk that holds an item. The array must have the item. */
async function findItem(rows: DocumentRows, field: number, index: number): Promise<FoundItem> {
  const chunks = await rows.chunks(field);
  let [at, first] = [0, 0];
  while (index >= first + chunks[at]!.items) {
    first += chunks[at]!.items;
    at++;
  }
  const text = await rows.chunkText(field, chunks[at]!.position);
  return { chunks, at, text, items: itemsOf(text), index: index - first };
}

async function set(
  rows: DocumentRows,
  field: ArrayRow,
  { chunks, at, text, items, index }: FoundItem,
  value: string,
  addBytes: (bytes: number) => void,
): Promise<FieldColumns> {
  const { start, end } = items[index]!;
  const addedBytes = Buffer.byteLength(value) - Buffer.byteLength(text.slice(start, end));
  addBytes(addedBytes);
  // A chunk ends with its last item, so white space after that item moves to the next chunk or to the field's row.
  const { lead, core, trail } = splitSpace(value);
  const isLast = index === items.length - 1;
  const after = isLast ? trail : "";
  const next = chunks[at + 1];
  if (after !== "" && next !== undefined) {
    await rows.extendChunk(field.position, next, { before: { text: after, items: 0 } });
  }
  const changed = setItem(text, items, index, isLast ? lead + core : value);
  await saveChunk(rows, field, { chunks, at, text: changed, items: items.length });
  return {
    ...field,
    sizeBytes: field.sizeBytes + addedBytes,
    value: next === undefined ? after + field.value : field.value,
  };
}

/** Deletes an item, with one comma. */
async function remove(
  rows: DocumentRows,
  field: ArrayRow,
  { chunks, at, text, items, index }: FoundItem,
): Promise<FieldColumns> {
  const { start, end } = items[index]!;
  if (index < items.length - 1) {
    const changed = deleteItem(text, items, index);
    await saveChunk(rows, field, { chunks, at, text: changed, items: items.length - 1 });
    const removedBytes = Buffer.byteLength(text) - Buffer.byteLength(changed);
    return { ...field, items: field.items - 1, sizeBytes: field.sizeBytes - removedBytes };
  }
  // The item is the last of its chunk. The text before it replaces the text before the first item of the next chunk.
  const previousEnd = items[index - 1]?.end ?? 0;
  const before = text.slice(previousEnd, start);
  const itemBytes = Buffer.byteLength(text.slice(start, end));
  const next = chunks[at + 1];
  let removedBytes = itemBytes + before.length;
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
  await saveChunk(rows, field, { chunks, at, text: text.slice(0, previousEnd), items: items.length - 1 });
  const isEmpty = field.items === 1;
  return { ...field, items: isEmpty ? undefined : field.items - 1, sizeBytes: field.sizeBytes - removedBytes, value };
}

/**
 * Stores a changed chunk. Splits a chunk that is too large, and merges a small one into a neighbor with enough
 * capacity.
 */
async function saveChunk(
  rows: DocumentRows,
  field: ArrayRow,
  { chunks, at, text, items }: Pick<FoundItem, "chunks" | "at" | "text"> & { readonly items: number },
): Promise<void> {
  const [previous, own, next] = [chunks[at - 1], chunks[at]!, chunks[at + 1]];
  if (text.length > maxChunkLength && items > 1) {
    await split(rows, field, text, [own.position, next?.position]);
    return;
  }
  const chunk = { text, items };
  const fitsInto = (other: ChunkEntry | undefined): other is ChunkEntry =>
    other !== undefined && other.sizeBytes + Buffer.byteLength(text) <= chunkLength;
  if (items === 0) {
    rows.deleteChunk(field.position, own.position);
  } else if (fitsInto(previous)) {
    rows.deleteChunk(field.position, own.position);
    await rows.extendChunk(field.position, previous, { after: chunk });
  } else if (fitsInto(next)) {
    rows.deleteChunk(field.position, own.position);
    await rows.extendChunk(field.position, next, { before: chunk });
  } else {
    rows.saveChunk(field.position, own.position, chunk);
  }
}

async function split(
  rows: DocumentRows,
  field: ArrayRow,
  text: string,
  [position, nextPosition]: readonly [number, number | undefined],
): Promise<void> {
  const pieces = [...eachChunk(text)];
  const step = Math.floor(((nextPosition ?? position + pieces.length * chunkGap) - position) / pieces.length);
  const [first, ...others] = pieces;
  if (step > 0) {
    rows.saveChunk(field.position, position, first!);
    if (others.length > 0) {
      rows.insertChunks(
        field.position,
        others.map((piece, i) => ({ position: position + (i + 1) * step, ...piece })),
      );
    }
    return;
  }
  // There is no gap left before the next position: store all chunks again, with new gaps.
  rows.saveChunk(field.position, position, { text, items: itemsOf(text).length });
  const array = (await rows.chunkTexts(field.position)) + field.value;
  await rows.deleteChunks(field.position, field.sizeBytes);
  await writeValue(rows, field.position, array);
}
