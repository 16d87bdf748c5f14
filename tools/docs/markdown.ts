/** Formats Markdown. The formatter aligns the result. */

/** Formats a table. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** Formats text as code. */
export function code(word: string | number): string {
  return `\`${word}\``;
}

/** Escapes text for a table cell. */
export function plain(text: string): string {
  return text.replaceAll(/[|<_*`]/g, "\\$&");
}
