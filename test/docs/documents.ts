/** The Markdown documents of the repository. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";

/** Of the root and of the client only what lies there itself: what is built and installed is below them. */
const shallow = [".", "client"];
const folders = [...shallow, "docs", "deploy", "examples", "proto"];

/** Paths of all documents, from the root. */
export async function listDocuments(): Promise<string[]> {
  const paths = await Promise.all(
    folders.map(async (folder) => {
      const names = await readdir(folder, { recursive: !shallow.includes(folder) });
      return names.filter((name) => name.endsWith(".md")).map((name) => join(folder, name));
    }),
  );
  return paths.flat().sort();
}
