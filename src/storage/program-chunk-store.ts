/** The chunks of the large fields of one document in the database: a row for each. */
import { hashChunkRow } from "../db/row-hashes.js";
import type { Chunk } from "./document-parts.js";
import type { Rows } from "./document-rows-store.js";
import { chunksOf } from "./program-parts-store.js";
import type { ChunkEntry, DocumentRows } from "./programs.js";
import { checkChunk, type ChunkRecord, readChunks } from "./stored-program.js";

type ChunkReads = Pick<DocumentRows, "chunks" | "lastChunk" | "chunkText" | "chunkTexts">;
type ChunkChanges = Pick<DocumentRows, "insertChunks" | "saveChunk" | "extendChunk" | "deleteChunk" | "deleteChunks">;

interface EntryRow {
  readonly position: number;
  readonly items: number;
  readonly size_bytes: number;
}

const columns = ["position", "items", "size_bytes"];

/** Reads and changes them. */
export function createChunkRows(rows: Rows): ChunkReads & ChunkChanges {
  return { ...createChunkReads(rows), ...createChunkChanges(rows) };
}

function createChunkReads(rows: Rows): ChunkReads {
  const { db, address, work, read } = rows;
  return {
    async chunks(field) {
      const entries = await db.rows<EntryRow>((sql) =>
        sql("program_chunks").where({ address, field }).orderBy("position").select(columns),
      );
      work.touchRows(entries.length);
      return entries.map(toEntry);
    },

    async lastChunk(field) {
      const row = await read<EntryRow>((sql) =>
        sql("program_chunks").where({ address, field }).orderBy("position", "desc").limit(1).select(columns),
      );
      return toEntry(row!);
    },

    async chunkText(field, position) {
      const { text } = await readChunk(rows, field, position);
      work.touchRows(1);
      work.touch(text);
      return text;
    },

    async chunkTexts(field) {
      const chunks = chunksOf(db.dialect, "CAST(? AS varchar(45))", "CAST(? AS integer)");
      const [row] = await db.rows<{ chunks: string }>((sql) => sql.raw(`SELECT ${chunks} AS chunks`, [address, field]));
      const text = readChunks(address, row!.chunks)
        .map((chunk) => chunk.text)
        .join("");
      work.touch(text);
      return text;
    },
  };
}

function createChunkChanges(rows: Rows): ChunkChanges {
  const { address, work, change, insert } = rows;
  /** The columns of a chunk beside its key, with its checksum. */
  const toColumns = (field: number, position: number, { text, items }: Chunk) => {
    const row = { items, size_bytes: Buffer.byteLength(text), text };
    return { ...row, row_hash: hashChunkRow({ address, field, position, ...row }) };
  };
  const saveChunk = (field: number, position: number, chunk: Chunk): Promise<void> =>
    change((sql) =>
      sql("program_chunks")
        .where({ address, field, position })
        .update(toColumns(field, position, chunk)),
    );

  return {
    async insertChunks(field, chunks) {
      chunks.forEach(({ text }) => work.touch(text));
      await insert(
        "program_chunks (address, field, position, items, size_bytes, text, row_hash)",
        `CAST(? AS varchar(45)), CAST(? AS integer), CAST(k.value ->> 0 AS bigint), CAST(k.value ->> 1 AS integer),
          CAST(k.value ->> 2 AS integer), k.value ->> 3, k.value ->> 4`,
        [address, field],
        chunks.map(({ position, ...chunk }) => {
          const { items, size_bytes, text, row_hash } = toColumns(field, position, chunk);
          return [position, items, size_bytes, text, row_hash];
        }),
      );
    },

    async saveChunk(field, position, chunk) {
      work.touch(chunk.text);
      await saveChunk(field, position, chunk);
    },

    async extendChunk(field, { position, sizeBytes }, { before, after }) {
      const bytesOf = (chunk: Chunk | undefined): number => Buffer.byteLength(chunk?.text ?? "");
      work.touch(sizeBytes + bytesOf(before) + bytesOf(after));
      // Its checksum is over all of its text.
      const { text, items } = await readChunk(rows, field, position);
      await saveChunk(field, position, {
        text: (before?.text ?? "") + text + (after?.text ?? ""),
        items: (before?.items ?? 0) + items + (after?.items ?? 0),
      });
    },

    deleteChunk: (field, position) =>
      change((sql) => sql("program_chunks").where({ address, field, position }).delete()),

    async deleteChunks(field, sizeBytes) {
      work.touch(sizeBytes);
      await change((sql) => sql("program_chunks").where({ address, field }).delete());
    },
  };
}

function toEntry({ position, items, size_bytes: sizeBytes }: EntryRow): ChunkEntry {
  return { position, items, sizeBytes };
}

async function readChunk({ db, address }: Rows, field: number, position: number): Promise<ChunkRecord> {
  const row = await db.first<ChunkRecord>((sql) =>
    sql("program_chunks")
      .where({ address, field, position })
      .select("address", "field", ...columns, "text", "row_hash"),
  );
  return checkChunk(address, row!);
}
