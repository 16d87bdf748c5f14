/** Pieces of Markdown; the formatter puts them in shape. */

/** A table. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** A word of a program. */
export function code(word: string | number): string {
  return `\`${word}\``;
}

/** Text as it is, in a cell. */
export function plain(text: string): string {
  return text.replaceAll(/[|<_*`]/g, "\\$&");
}
