/** Output of the commands: tables that fit the terminal, and color if stdout is a terminal. */
import { styleText } from "node:util";
import { lengthOf, widthOf, wrap } from "./wrap.js";

const gap = "  ";
/** Minimum width of the last column; wider text wraps within the column. */
const minLastColumn = 24;
/** Indentation of a cell that is printed below its row. */
const below = "    ";

export function print(...lines: string[]): void {
  process.stdout.write(`${lines.join("\n")}\n`);
}

/** Prints a result: with `--json` a body, which is a value or the text of JSON, and otherwise lines for people. */
export function printResult(
  { json }: { readonly json?: boolean },
  body: unknown,
  lines: () => string | readonly string[],
): void {
  if (json === true) {
    print(typeof body === "string" ? body : JSON.stringify(body));
  } else {
    print(...[lines()].flat());
  }
}

export interface PageBody {
  readonly nextPageToken?: string;
  /** First block whose content the node lists, for lists of block content. */
  readonly fromBlock?: number;
  readonly historyFromBlock?: number;
}

/**
 * Prints a page of a list, and the way to the next one.
 *
 * @param rowsOf Returns the rows of the parsed response, without the heading.
 * @param hasPages False if the caller counts items instead of pages.
 */
export function printPage(
  flags: { readonly json?: boolean },
  text: string,
  heading: readonly string[],
  rowsOf: (body: never) => readonly (readonly string[])[],
  empty: string,
  hasPages = true,
): void {
  printResult(flags, text, () => {
    const body = JSON.parse(text) as PageBody;
    const rows = rowsOf(body as never);
    const { nextPageToken, fromBlock = 1, historyFromBlock = fromBlock } = body;
    const lines = rows.length === 0 ? [empty] : table([heading, ...rows]);
    const note = (content: string) => lines.push("", ...wrap(content, widthOf(process.stdout), false));
    if (nextPageToken !== undefined && hasPages) {
      note(`Next page: repeat the command with --page-token ${nextPageToken}`);
    } else if (historyFromBlock > 1) {
      note(`This node does not list blocks before ${historyFromBlock}.`);
    }
    return lines;
  });
}

/** Colors text if stdout is a terminal with color support (NO_COLOR, FORCE_COLOR). */
export function paint(format: Parameters<typeof styleText>[0], text: string): string {
  return process.stdout.isTTY && process.stdout.hasColors() ? styleText(format, text) : text;
}

/**
 * Formats rows with aligned columns; the first row is the heading. A table that is too wide loses no content:
 *
 * - The last column wraps.
 * - If wrapping would break a word of a last column without heading, its cells go below their rows.
 * - If even that does not fit, each row becomes a block with one line for each cell.
 */
export function table(rows: readonly (readonly string[])[], width = widthOf(process.stdout)): string[] {
  const heading = rows[0] ?? [];
  const widths = rows.reduce<number[]>(
    (widest, row) => row.map((cell, i) => Math.max(widest[i] ?? 0, lengthOf(cell))),
    [],
  );
  const lastStart = widths.slice(0, -1).reduce((sum, column) => sum + column + gap.length, 0);
  const longestWord = heading.at(-1) === "" ? longestLength(rows.flatMap((row) => row.at(-1)!.split(" "))) : 0;
  if (lastStart + Math.max(longestWord, Math.min(widths.at(-1) ?? 0, minLastColumn)) <= width) {
    return rows.flatMap((row, i) => paintHeading(alignRow(row, widths, lastStart, width), i));
  }
  if (heading.at(-1) === "" && lastStart <= width) {
    return rows.flatMap((row, i) => [
      ...paintHeading(alignRow([...row.slice(0, -1), ""], widths, lastStart, Infinity), i),
      ...(row.at(-1) === "" ? [] : wrap(row.at(-1)!, width - below.length).map((line) => below + line)),
    ]);
  }
  return rows.slice(1).flatMap((row, i) => [...(i === 0 ? [] : [""]), ...block(heading, row, width)]);
}

function longestLength(words: readonly string[]): number {
  return words.reduce((longest, word) => Math.max(longest, lengthOf(word)), 0);
}

/** Formats a row with aligned columns. Its last cell wraps within its column. */
function alignRow(row: readonly string[], widths: readonly number[], lastStart: number, width: number): string[] {
  const [first = "", ...more] = wrap(row.at(-1) ?? "", width - lastStart);
  const cells = row.slice(0, -1).map((cell, i) => cell + " ".repeat(widths[i]! - lengthOf(cell)));
  return [[...cells, first].join(gap).trimEnd(), ...more.map((line) => " ".repeat(lastStart) + line)];
}

function paintHeading(lines: readonly string[], rowNumber: number): string[] {
  return lines.map((line) => (rowNumber === 0 ? paint("dim", line) : line));
}

/** Formats a row as a block: one cell below the other, each after its heading. Empty cells are omitted. */
function block(heading: readonly string[], row: readonly string[], width: number): string[] {
  const labels = heading.map((label) => label.trim());
  const start = Math.max(...labels.map((label) => label.length)) + gap.length;
  return row.flatMap((cell, i) => {
    const lines = cell === "" ? [] : wrap(cell.trim(), width - start);
    return lines.map((line, n) => paint("dim", (n === 0 ? labels[i]! : "").padEnd(start)) + line);
  });
}

/** Formats warnings, wrapped to the width, each with a mark in front. */
export function describeWarnings(messages: readonly string[], width = widthOf(process.stdout)): string[] {
  const mark = paint("yellow", "!");
  return messages.flatMap((message) =>
    wrap(message, width - gap.length, false).map((line, i) => (i === 0 ? `${mark} ${line}` : `${gap}${line}`)),
  );
}

/** Formats a duration: `3 d 4 h`, `5 min 6 s`, `0.7 s`. */
export function duration(seconds: number): string {
  if (seconds < 10) {
    return `${Math.round(seconds * 10) / 10} s`;
  }
  let rest = Math.round(seconds);
  const parts: string[] = [];
  for (const [unit, size] of Object.entries({ d: 86_400, h: 3_600, min: 60, s: 1 })) {
    const count = Math.floor(rest / size);
    rest %= size;
    if (count > 0) {
      parts.push(`${count} ${unit}`);
    }
  }
  return parts.slice(0, 2).join(" ");
}

export function ago(timeMs: number | undefined): string {
  return timeMs === undefined ? "never" : `${duration(Math.max(0, Date.now() - timeMs) / 1000)} ago`;
}

export function instant(timeMs: number): string {
  // JavaScript dates end at 8.64e15 ms.
  return Math.abs(timeMs) <= 8.64e15 ? new Date(timeMs).toISOString() : `${timeMs} ms`;
}

/** Replaces control and other invisible characters in untrusted text, since they could control the terminal. */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, "\ufffd");
}

/** Shortens a key or hash for tables; `--json` prints the full value. */
export function shorten(hash: string): string {
  return hash === "" ? "unknown" : `${hash.slice(0, 10)}…${hash.slice(-4)}`;
}
