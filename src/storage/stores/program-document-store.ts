/** Rows of one document. */
import { hashDocumentRow } from "../../db/rows/row-hashes.js";
import { createChunkRows } from "./program-chunk-store.js";
import { createFieldRows } from "./program-field-store.js";
import type { DocumentPlace } from "./program-tables-store.js";
import type { DocumentRows } from "../programs/programs.js";
import { joinRows } from "../programs/stored-program.js";

export function createDocumentRows(place: DocumentPlace): DocumentRows {
  return { ...createTextRows(place), ...createFieldRows(place), ...createChunkRows(place) };
}

function createTextRows({
  tables,
  address,
  work,
}: DocumentPlace): Pick<DocumentRows, "whole" | "text" | "saveText" | "clear" | "wrote"> {
  const { documents, fields, chunks } = tables;

  async function readText(): Promise<string | undefined> {
    const text = (await documents.get(address))?.data;
    work.touch(text ?? 0);
    return text;
  }

  return {
    async whole({ sizeBytes, inParts }) {
      if (!inParts) {
        return await readText();
      }
      const parts = {
        fields: await fields.list(address),
        chunks: await chunks.list(address),
        tail: (await documents.get(address))?.data,
      };
      const { text } = await joinRows(address, parts, sizeBytes);
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
      if ((await documents.get(address)) === undefined) {
        documents.insert(row);
      } else {
        documents.put(row);
      }
    },

    // Only the wrapper in ../changes/dirty-programs.ts uses this call.
    wrote: () => undefined,

    async clear({ sizeBytes, inParts }) {
      work.touch(sizeBytes);
      for (const table of inParts ? [documents, fields, chunks] : [documents, fields]) {
        work.touchRows(await table.clear(address));
      }
    },
  };
}
