/** Rows of one document. */
import { hashDocumentRow } from "../../db/rows/row-hashes.js";
import { createChunkRows } from "./program-chunk-store.js";
import { createFieldRows } from "./program-field-store.js";
import type { DocumentContext } from "./program-tables-store.js";
import type { DocumentRows } from "../programs/programs.js";
import { joinRows } from "../programs/stored-program.js";

export function createDocumentRows(context: DocumentContext): DocumentRows {
  return { ...createTextRows(context), ...createFieldRows(context), ...createChunkRows(context) };
}

function createTextRows({
  tables,
  address,
  cost,
}: DocumentContext): Pick<DocumentRows, "fullText" | "text" | "saveText" | "clear" | "wrote"> {
  const { documents, fields, chunks } = tables;

  async function readText(): Promise<string | undefined> {
    const text = (await documents.get(address))?.data;
    cost.touch(text ?? 0);
    return text;
  }

  return {
    async fullText({ sizeBytes, inParts }) {
      if (!inParts) {
        return await readText();
      }
      const parts = {
        fields: await fields.list(address),
        chunks: await chunks.list(address),
        tail: (await documents.get(address))?.data,
      };
      const { text } = await joinRows(address, parts, sizeBytes);
      cost.touch(text);
      return text;
    },

    async text() {
      cost.touchRows(1);
      return (await readText())!;
    },

    async saveText(data) {
      cost.touchRows(1);
      cost.touch(data);
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
      cost.touch(sizeBytes);
      for (const table of inParts ? [documents, fields, chunks] : [documents, fields]) {
        cost.touchRows(await table.clear(address));
      }
    },
  };
}
