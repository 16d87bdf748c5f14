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
}: DocumentContext): Pick<DocumentRows, "fullText" | "text" | "saveText" | "clear" | "onWritten"> {
  const { documents, fields, chunks } = tables;

  async function readText(): Promise<string | undefined> {
    const text = (await documents.get(address))?.data;
    cost.addText(text ?? 0);
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
      cost.addText(text);
      return text;
    },

    async text() {
      cost.addRows(1);
      return (await readText())!;
    },

    async saveText(data) {
      cost.addRows(1);
      cost.addText(data);
      const row = { address, data, row_hash: hashDocumentRow({ address, data }) };
      if ((await documents.get(address)) === undefined) {
        documents.insert(row);
      } else {
        documents.put(row);
      }
    },

    // Only the wrapper in ../changes/dirty-programs.ts needs this call.
    onWritten: () => undefined,

    async clear({ sizeBytes, inParts }) {
      cost.addText(sizeBytes);
      for (const table of inParts ? [documents, fields, chunks] : [documents, fields]) {
        cost.addRows(await table.clear(address));
      }
    },
  };
}
