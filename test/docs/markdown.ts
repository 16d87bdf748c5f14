/** The Markdown documents of the repository, and their links, code and anchors. */
import MarkdownIt, { type Token } from "markdown-it";
import { readdir } from "node:fs/promises";
import { join } from "node:path";

const parser = new MarkdownIt({ html: true });

/** Yields the tokens of a document in order, inline tokens after their block. */
export function* tokensOf(markdown: string): Generator<Token & { readonly line: number }> {
  let line = 0;
  for (const block of parser.parse(markdown, {})) {
    line = (block.map?.[0] ?? line - 1) + 1;
    for (const token of [block, ...(block.children ?? [])]) {
      yield Object.assign(token, { line });
    }
  }
}

/** Returns the addresses of links and images, with the number of the first line of their block, from 1. */
export function linksOf(markdown: string): { text: string; line: number }[] {
  return [...tokensOf(markdown)].flatMap((token) => {
    const address = token.attrGet(token.type === "image" ? "src" : "href");
    return address === null ? [] : [{ text: String(address), line: token.line }];
  });
}

/** Returns the text of all code, inline and in blocks. */
export function codeOf(markdown: string): string[] {
  return [...tokensOf(markdown)]
    .filter(({ type }) => ["code_inline", "code_block", "fence"].includes(type))
    .map(({ content }) => content);
}

/** Returns the anchors of the headings, as GitHub creates them. */
export function anchorsOf(markdown: string): Set<string> {
  const anchors = new Set<string>();
  const tokens = [...tokensOf(markdown)];
  for (const [i, { type }] of tokens.entries()) {
    if (type === "heading_open") {
      const text = (tokens[i + 1]!.children ?? []).map(({ content }) => content).join("");
      const slug = text
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "")
        .replaceAll(" ", "-");
      let anchor = slug;
      for (let n = 1; anchors.has(anchor); n++) {
        anchor = `${slug}-${n}`;
      }
      anchors.add(anchor);
    }
  }
  return anchors;
}

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
