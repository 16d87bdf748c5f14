/** The rows of one document in the database. */
import type { Queries } from "../db/database.js";
import type { Chunk } from "./document-parts.js";
import type { ChunkEntry, DocumentRows, FieldColumns, FieldRow } from "./programs.js";
import { chunksOf, wholeDocument } from "./program-text-store.js";
import type { Work } from "./work.js";

interface FieldRecord {
  readonly position: number;
  readonly type: FieldRow["type"];
  readonly text_before: string;
  readonly value: string;
  readonly size_bytes: number;
  readonly items: number | null;
}

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
  return {
    async whole() {
      const [row] = await db.rows<{ text: string | null }>((sql) =>
        sql.raw(
          `SELECT ${wholeDocument(db.dialect)} AS text FROM programs p
            LEFT JOIN program_documents d ON d.address = p.address WHERE p.address = ?`,
          [address],
        ),
      );
      const text = row?.text ?? undefined;
      work.touch(text ?? 0);
      return text;
    },

    async text() {
      const row = await db.first<{ data: string }>((sql) => sql("program_documents").where({ address }).select("data"));
      const { data } = row!;
      work.touchRows(1);
      work.touch(data);
      return data;
    },

    async saveText(data) {
      work.touchRows(1);
      work.touch(data);
      await db.run((sql) => sql("program_documents").insert({ address, data }).onConflict("address").merge());
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
    const { position, type, text_before: before, value, size_bytes: sizeBytes, items } = row;
    work.touch(before);
    work.touch(value);
    return { position, type, before, value, sizeBytes, items: items ?? undefined };
  };
  const columns = ["position", "type", "text_before", "value", "size_bytes", "items"];
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
        "program_fields (address, position, name_json, type, text_before, value, size_bytes, items)",
        `CAST(? AS varchar(45)), CAST(? AS integer) + ${slot}, k.value ->> 0, k.value ->> 1, k.value ->> 2, k.value ->> 3,
          CAST(k.value ->> 4 AS integer), CAST(k.value ->> 5 AS integer)`,
        [address, position],
        fields.map(({ name, type, before, value, sizeBytes, items = null }) => [
          JSON.stringify(name),
          type,
          before,
          value,
          sizeBytes,
          items,
        ]),
      );
    },

    async saveField(position, field) {
      touchTexts(field);
      const { type, before, value, sizeBytes, items = null } = field;
      await change((sql) =>
        sql("program_fields")
          .where({ address, position })
          .update({ type, text_before: before, value, size_bytes: sizeBytes, items }),
      );
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
      const row = await read<{ text: string }>((sql) =>
        sql("program_chunks").where({ address, field, position }).select("text"),
      );
      const { text } = row!;
      work.touch(text);
      return text;
    },

    async chunkTexts(field) {
      const texts = chunksOf(db.dialect, "CAST(? AS varchar(45))", "CAST(? AS integer)");
      const [row] = await db.rows<{ text: string }>((sql) => sql.raw(`SELECT ${texts} AS text`, [address, field]));
      const { text } = row!;
      work.touch(text);
      return text;
    },

    async insertChunks(field, chunks) {
      chunks.forEach(({ text }) => work.touch(text));
      await insert(
        "program_chunks (address, field, position, items, size_bytes, text)",
        `CAST(? AS varchar(45)), CAST(? AS integer), CAST(k.value ->> 0 AS bigint), CAST(k.value ->> 1 AS integer),
          CAST(k.value ->> 2 AS integer), k.value ->> 3`,
        [address, field],
        chunks.map(({ position, items, text }) => [position, items, Buffer.byteLength(text), text]),
      );
    },

    async saveChunk(field, position, { text, items }) {
      work.touch(text);
      await change((sql) =>
        sql("program_chunks")
          .where({ address, field, position })
          .update({ text, items, size_bytes: Buffer.byteLength(text) }),
      );
    },

    async extendChunk(field, { position, sizeBytes }, { before, after }) {
      const add = (chunk: Chunk | undefined) => ({ text: chunk?.text ?? "", items: chunk?.items ?? 0 });
      const [first, last] = [add(before), add(after)];
      const more = Buffer.byteLength(first.text) + Buffer.byteLength(last.text);
      work.touch(sizeBytes + more);
      await change((sql) =>
        sql("program_chunks")
          .where({ address, field, position })
          .update({
            text: sql.raw("CAST(? AS text) || text || CAST(? AS text)", [first.text, last.text]),
            items: sql.raw("items + CAST(? AS integer)", [first.items + last.items]),
            size_bytes: sql.raw("size_bytes + CAST(? AS integer)", [more]),
          }),
      );
    },

    deleteChunk: (field, position) =>
      change((sql) => sql("program_chunks").where({ address, field, position }).delete()),

    async deleteChunks(field, sizeBytes) {
      work.touch(sizeBytes);
      await change((sql) => sql("program_chunks").where({ address, field }).delete());
    },
  };
}
