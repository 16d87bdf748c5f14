/** Writes the generated parts of the documents: `npm run docs`. */
import { writeFile } from "node:fs/promises";
import { generateDocs } from "./generated.js";

for (const [path, text] of await generateDocs()) {
  await writeFile(path, text);
}
