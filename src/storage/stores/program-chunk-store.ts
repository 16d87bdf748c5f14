/** Chunks of the large fields of one document, one row for each chunk. */
import { hashChunkRow } from "../../db/rows/row-hashes.js";
import type { Chunk } from "../documents/document-parts.js";
import type { DocumentContext } from "./program-tables-store.js";
import type { ChunkEntry, DocumentRows } from "../programs/programs.js";
import type { ChunkRecord } from "../programs/stored-program.js";

type ChunkReads = Pick<DocumentRows, "chunks" | "lastChunk" | "chunkText" | "chunkTexts">;
type ChunkChanges = Pick<DocumentRows, "insertChunks" | "saveChunk" | "extendChunk" | "deleteChunk" | "deleteChunks">;

export function createChunkRows(context: DocumentContext): ChunkReads & ChunkChanges {
  return { ...createChunkReads(context), ...createChunkChanges(context) };
}

function createChunkReads(context: DocumentContext): ChunkReads {
  const { address, cost } = context;
  const { chunks } = context.tables;
  return {
    async chunks(field) {
      const entries = await chunks.list(address, [field], ["field", "position", "items", "size_bytes"]);
      cost.addRows(entries.length);
      return entries.map(toEntry);
    },

    async lastChunk(field) {
      const position = await chunks.seek(address, [field], "last");
      cost.addRows(1);
      return toEntry(await readChunk(context, field, position!));
    },

    async chunkText(field, position) {
      const { text } = await readChunk(context, field, position);
      cost.addRows(1);
      cost.addText(text);
      return text;
    },

    async chunkTexts(field) {
      const text = (await chunks.list(address, [field])).map((chunk) => chunk.text).join("");
      cost.addText(text);
      return text;
    },
  };
}

function createChunkChanges(context: DocumentContext): ChunkChanges {
  const { address, cost } = context;
  const { chunks } = context.tables;
  const toRow = (field: number, position: number, { text, items }: Chunk): ChunkRecord => {
    const row = { address, field, position, items, size_bytes: Buffer.byteLength(text), text };
    return { ...row, row_hash: hashChunkRow(row) };
  };
  const saveChunk = (field: number, position: number, chunk: Chunk): void => {
    cost.addRows(1);
    chunks.put(toRow(field, position, chunk));
  };
  const deleteChunk = (field: number, position: number): void => {
    cost.addRows(1);
    chunks.remove(address, field, position);
  };

  return {
    insertChunks(field, added) {
      cost.addRows(added.length);
      for (const { position, ...chunk } of added) {
        cost.addText(chunk.text);
        chunks.insert(toRow(field, position, chunk));
      }
      return Promise.resolve();
    },

    saveChunk(field, position, chunk) {
      cost.addText(chunk.text);
      saveChunk(field, position, chunk);
      return Promise.resolve();
    },

    async extendChunk(field, { position, sizeBytes }, { before, after }) {
      const bytesOf = (chunk: Chunk | undefined): number => Buffer.byteLength(chunk?.text ?? "");
      cost.addText(sizeBytes + bytesOf(before) + bytesOf(after));
      // The checksum covers the full text of the chunk, so the text must be read.
      const { text, items } = await readChunk(context, field, position);
      saveChunk(field, position, {
        text: (before?.text ?? "") + text + (after?.text ?? ""),
        items: (before?.items ?? 0) + items + (after?.items ?? 0),
      });
    },

    deleteChunk(field, position) {
      deleteChunk(field, position);
      return Promise.resolve();
    },

    async deleteChunks(field, sizeBytes) {
      cost.addText(sizeBytes);
      for (const { position } of await chunks.list(address, [field], ["field", "position"])) {
        deleteChunk(field, position);
      }
    },
  };
}

function toEntry({ position, items, size_bytes: sizeBytes }: ChunkRecord): ChunkEntry {
  return { position, items, sizeBytes };
}

async function readChunk({ address, tables }: DocumentContext, field: number, position: number): Promise<ChunkRecord> {
  return (await tables.chunks.get(address, field, position))!;
}
