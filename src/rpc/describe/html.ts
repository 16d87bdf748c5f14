/** HTML templates that escape their values, so that comments of the contract are never interpreted as markup. */

export class Html {
  constructor(readonly text: string) {}
}

type Content = string | number | Html | undefined | false | readonly Content[];

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/**
 * Renders a template. Text is escaped, markup is inserted unchanged, lists are joined, undefined and false are omitted.
 */
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

/** Renders paragraphs, with text in backticks as code. */
export function paragraphs(text: string): Html[] {
  return text
    .split("\n\n")
    .filter((paragraph) => paragraph !== "")
    .map((paragraph) => html`<p>${withCode(paragraph)}</p>`);
}

/** Renders text in backticks as code: every second part after splitting at backticks. */
function withCode(text: string): Content[] {
  return text.split("`").map((part, i) => (i % 2 === 0 ? part : html`<code>${part}</code>`));
}
