/** Blocks of documents that are the content of a file. */
import { readFile } from "node:fs/promises";

/** Returns the block of a document that is saved as this file. */
export async function savedBlock(document: string, file: string): Promise<string> {
  const text = await readFile(document, "utf8");
  const [, block] = text.split(`<!-- test: save as ${file} -->\n\n`);
  const content = block === undefined ? undefined : /^```\w+\n([^]*?)```/.exec(block)?.[1];
  if (content === undefined) {
    throw new Error(`${document} saves no block as ${file}`);
  }
  return content;
}
