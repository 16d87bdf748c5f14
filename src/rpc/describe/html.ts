/** HTML by templates that escape what they are given, so that no comment of the contract is ever taken for markup. */

/** Markup that is right as it stands. */
export class Html {
  constructor(readonly text: string) {}
}

type Content = string | number | Html | undefined | false | readonly Content[];

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** Texts are escaped, markup is not, lists are joined, and what is undefined or false is left out. */
export function html(parts: TemplateStringsArray, ...contents: readonly Content[]): Html {
  return new Html(parts.map((part, i) => (i === 0 ? "" : toText(contents[i - 1])) + part).join(""));
}

function toText(content: Content): string {
  if (content instanceof Html) {
    return content.text;
  }
  if (content === undefined || content === false) {
    return "";
  }
  return typeof content === "object"
    ? content.map(toText).join("")
    : String(content).replace(/[&<>"]/g, (character) => entities[character]!);
}

/** Paragraphs, with what stands in backticks as code. */
export function paragraphs(text: string): Html[] {
  return text
    .split("\n\n")
    .filter((paragraph) => paragraph !== "")
    .map((paragraph) => html`<p>${withCode(paragraph)}</p>`);
}

/** Every other part of a text with backticks stands between two of them. */
function withCode(text: string): Content[] {
  return text.split("`").map((part, i) => (i % 2 === 0 ? part : html`<code>${part}</code>`));
}
