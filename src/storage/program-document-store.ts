/** The rows of one document in the database. */
import type { Queries } from "../db/database.js";
import { hashDocumentRow } from "../db/row-hashes.js";
import { createRows } from "./document-rows-store.js";
import { createChunkRows } from "./program-chunk-store.js";
import { createFieldRows } from "./program-field-store.js";
import { readParts } from "./program-parts-store.js";
import type { DocumentRows } from "./programs.js";
import { checkText, joinParts, type TextRow } from "./stored-program.js";
import type { Work } from "./work.js";

/** Builds the reads and changes, inside the transaction of a block. */
export function createDocumentRows(db: Queries, address: string, work: Work): DocumentRows {
  const rows = createRows(db, address, work);
  return { ...createTextRows(db, address, work), ...createFieldRows(rows), ...createChunkRows(rows) };
}

function createTextRows(
  db: Queries,
  address: string,
  work: Work,
): Pick<DocumentRows, "whole" | "text" | "saveText" | "clear" | "wrote"> {
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
      const { text } = await joinParts(address, await readParts(db, address), sizeBytes);
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

    // Whoever has to know hears of it in ./touched.ts.
    wrote: () => undefined,

    async clear({ sizeBytes, inParts }) {
      work.touch(sizeBytes);
      for (const table of ["program_documents", "program_fields", ...(inParts ? ["program_chunks"] : [])]) {
        work.touchRows((await db.run((sql) => sql(table).where({ address }).delete())) as number);
      }
    },
  };
}
