/** The Markdown documents of the repository. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";

/** Folders that are not searched recursively, because they contain build output and packages. */
const shallow = [".", "client"];
const folders = [...shallow, "docs", "deploy", "examples", "proto"];

/** Returns the paths of all documents, relative to the root. */
export async function listDocuments(): Promise<string[]> {
  const paths = await Promise.all(
    folders.map(async (folder) => {
      const names = await readdir(folder, { recursive: !shallow.includes(folder) });
      return names.filter((name) => name.endsWith(".md")).map((name) => join(folder, name));
    }),
  );
  return paths.flat().sort();
}
