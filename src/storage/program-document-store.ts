/** The rows of one document in the database. */
import type { Queries } from "../db/database.js";
import type { Chunk } from "./document-parts.js";
import { hashChunkRow, hashDocumentRow, hashFieldRow } from "../db/row-hashes.js";
import { allChunksOf, chunksOf, fieldsOf } from "./program-parts-store.js";
import type { ChunkEntry, DocumentRows, FieldColumns, FieldRow } from "./programs.js";
import {
  checkChunk,
  checkField,
  checkText,
  type ChunkRecord,
  type FieldRecord,
  joinParts,
  type Parts,
  readChunks,
  type TextRow,
} from "./stored-program.js";
import type { Work } from "./work.js";

/** Builds the reads and changes, inside the transaction of a block. */
export function createDocumentRows(db: Queries, address: string, work: Work): DocumentRows {
  const rows = createRows(db, address, work);
  return { ...createTextRows(db, address, work), ...createFieldRows(rows), ...createChunkRows(rows) };
}

/** Runs queries on rows of the document, and counts what they touch. */
function createRows(db: Queries, address: string, work: Work) {
  return {
    db,
    address,
    work,
    /** The first row of a query that reads. */
    read: async <Row>(...query: Parameters<typeof db.first<Row>>): Promise<Row | undefined> => {
      const row = await db.first<Row>(...query);
      work.touchRows(row === undefined ? 0 : 1);
      return row;
    },
    /** Runs an update or a delete. */
    change: async (build: Parameters<Queries["run"]>[0]): Promise<void> => {
      work.touchRows((await db.run(build)) as number);
    },
    /** Inserts rows that are given as lists of what these SQL expressions take. */
    insert: async (
      into: string,
      values: string,
      first: readonly (string | number)[],
      lists: readonly unknown[],
    ): Promise<void> => {
      const text = JSON.stringify(lists);
      work.touchRows(lists.length);
      await db.run((sql) =>
        sql.raw(`INSERT INTO ${into} SELECT ${values} FROM ${db.dialect.list.table}`, [...first, text]),
      );
    },
  };
}

type Rows = ReturnType<typeof createRows>;

function createTextRows(
  db: Queries,
  address: string,
  work: Work,
): Pick<DocumentRows, "whole" | "text" | "saveText" | "clear"> {
  async function readText(): Promise<string | undefined> {
    const row = await db.first<TextRow>((sql) =>
      sql("program_documents").where({ address }).select("data", "row_hash"),
    );
    const text = row && checkText(address, row);
    work.touch(text ?? 0);
    return text;
  }

  return {
    async whole({ sizeBytes, inParts }) {
      if (!inParts) {
        return await readText();
      }
      const [parts] = await db.rows<Parts>((sql) =>
        sql.raw(
          `SELECT d.data, d.row_hash, ${fieldsOf(db.dialect, "d.address")} AS fields, ${allChunksOf(db.dialect, "d.address")} AS chunks
            FROM program_documents d WHERE d.address = ?`,
          [address],
        ),
      );
      const { text } = await joinParts(address, parts!, sizeBytes);
      work.touch(text);
      return text;
    },

    async text() {
      work.touchRows(1);
      return (await readText())!;
    },

    async saveText(data) {
      work.touchRows(1);
      work.touch(data);
      const row = { address, data, row_hash: hashDocumentRow({ address, data }) };
      await db.run((sql) => sql("program_documents").insert(row).onConflict("address").merge());
    },

    async clear({ sizeBytes, inParts }) {
      work.touch(sizeBytes);
      for (const table of ["program_documents", "program_fields", ...(inParts ? ["program_chunks"] : [])]) {
        work.touchRows((await db.run((sql) => sql(table).where({ address }).delete())) as number);
      }
    },
  };
}

function createFieldRows({
  db,
  address,
  work,
  read,
  change,
  insert,
}: Rows): Pick<DocumentRows, "field" | "fieldAfter" | "lastPosition" | "insertFields" | "saveField" | "deleteField"> {
  const { slot } = db.dialect.list;
  const toField = (row: FieldRecord | undefined): FieldRow | undefined => {
    if (row === undefined) {
      return undefined;
    }
    const { position, text_before: before, value, size_bytes: sizeBytes, items } = checkField(address, row);
    work.touch(before);
    work.touch(value);
    const name = JSON.parse(row.name_json) as string;
    return { position, name, type: row.type as FieldRow["type"], before, value, sizeBytes, items: items ?? undefined };
  };
  const columns = [
    ...["address", "position", "name_json", "type", "text_before", "value", "size_bytes", "items"],
    "row_hash",
  ];
  /** The row of a field. */
  const toRow = (position: number, name: string, field: FieldColumns) => {
    const { type, before, value, sizeBytes: size_bytes, items = null } = field;
    const name_json = JSON.stringify(name);
    const row = { address, position, name_json, type, text_before: before, value, size_bytes, items, row_hash: "" };
    row.row_hash = hashFieldRow(row);
    return row;
  };
  const touchTexts = ({ before, value }: FieldColumns): void => {
    work.touch(before);
    work.touch(value);
  };

  return {
    async field(name) {
      const key = { address, name_json: JSON.stringify(name) };
      return toField(await read<FieldRecord>((sql) => sql("program_fields").where(key).select(columns)));
    },

    async fieldAfter(position) {
      return toField(
        await read<FieldRecord>((sql) =>
          sql("program_fields")
            .where({ address })
            .where("position", ">", position)
            .orderBy("position")
            .limit(1)
            .select(columns),
        ),
      );
    },

    async lastPosition(below) {
      const row = await read<{ position: number }>((sql) => {
        const fields = sql("program_fields").where({ address });
        return (below === undefined ? fields : fields.where("position", "<", below))
          .orderBy("position", "desc")
          .limit(1)
          .select("position");
      });
      return row?.position;
    },

    async insertFields(position, fields) {
      fields.forEach(touchTexts);
      await insert(
        "program_fields (address, position, name_json, type, text_before, value, size_bytes, items, row_hash)",
        `CAST(? AS varchar(45)), CAST(? AS integer) + ${slot}, k.value ->> 0, k.value ->> 1, k.value ->> 2, k.value ->> 3,
          CAST(k.value ->> 4 AS integer), CAST(k.value ->> 5 AS integer), k.value ->> 6`,
        [address, position],
        fields.map((field, i) => {
          const row = toRow(position + i, field.name, field);
          return [row.name_json, row.type, row.text_before, row.value, row.size_bytes, row.items, row.row_hash];
        }),
      );
    },

    async saveField({ position, name, ...field }) {
      touchTexts(field);
      const { type, text_before, value, size_bytes, items, row_hash } = toRow(position, name, field);
      const row = { type, text_before, value, size_bytes, items, row_hash };
      await change((sql) => sql("program_fields").where({ address, position }).update(row));
    },

    deleteField: (position) => change((sql) => sql("program_fields").where({ address, position }).delete()),
  };
}

function createChunkRows({
  db,
  address,
  work,
  read,
  change,
  insert,
}: Rows): Pick<
  DocumentRows,
  | "chunks"
  | "lastChunk"
  | "chunkText"
  | "chunkTexts"
  | "insertChunks"
  | "saveChunk"
  | "extendChunk"
  | "deleteChunk"
  | "deleteChunks"
> {
  interface EntryRow {
    readonly position: number;
    readonly items: number;
    readonly size_bytes: number;
  }
  const columns = ["position", "items", "size_bytes"];
  /** The columns of a chunk beside its key, with its checksum. */
  const toColumns = (field: number, position: number, { text, items }: Chunk) => {
    const row = { items, size_bytes: Buffer.byteLength(text), text };
    return { ...row, row_hash: hashChunkRow({ address, field, position, ...row }) };
  };
  const readChunk = async (field: number, position: number): Promise<ChunkRecord> => {
    const row = await db.first<ChunkRecord>((sql) =>
      sql("program_chunks")
        .where({ address, field, position })
        .select("address", "field", ...columns, "text", "row_hash"),
    );
    return checkChunk(address, row!);
  };
  const saveChunk = (field: number, position: number, chunk: Chunk): Promise<void> =>
    change((sql) =>
      sql("program_chunks")
        .where({ address, field, position })
        .update(toColumns(field, position, chunk)),
    );
  const toEntry = ({ position, items, size_bytes: sizeBytes }: EntryRow): ChunkEntry => ({
    position,
    items,
    sizeBytes,
  });

  return {
    async chunks(field) {
      const rows = await db.rows<EntryRow>((sql) =>
        sql("program_chunks").where({ address, field }).orderBy("position").select(columns),
      );
      work.touchRows(rows.length);
      return rows.map(toEntry);
    },

    async lastChunk(field) {
      const row = await read<EntryRow>((sql) =>
        sql("program_chunks").where({ address, field }).orderBy("position", "desc").limit(1).select(columns),
      );
      return toEntry(row!);
    },

    async chunkText(field, position) {
      const { text } = await readChunk(field, position);
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
      const { text, items } = await readChunk(field, position);
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
