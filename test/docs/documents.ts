/** The Markdown documents of the repository. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";

const folders = [".", "docs", "deploy", "examples", "proto"];

/** Paths of all documents, from the root. */
export async function listDocuments(): Promise<string[]> {
  const paths = await Promise.all(
    folders.map(async (folder) => {
      const names = await readdir(folder, { recursive: folder !== "." });
      return names.filter((name) => name.endsWith(".md")).map((name) => join(folder, name));
    }),
  );
  return paths.flat().sort();
}
