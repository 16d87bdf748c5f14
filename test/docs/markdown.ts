/** Links, code and anchors of Markdown documents. */
import MarkdownIt, { type Token } from "markdown-it";

const parser = new MarkdownIt({ html: true });

/** A part of a document, with the number of the first line of its block, from 1. */
interface Part {
  readonly text: string;
  readonly line: number;
}

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

/** Returns the addresses of links and images. */
export function linksOf(markdown: string): Part[] {
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
