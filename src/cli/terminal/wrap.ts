/** Width of the output, and line wrapping. */
import type { WriteStream } from "node:tty";
import { readEnvironment } from "../../config/variables.js";

/** Minimum line width; a narrower terminal counts as this wide. */
const minWidth = 20;
/** Escape sequences for the colors and styles of a terminal, which have no width. */
const styles = /\u001b\[\d+(?:;\d+)*m/g;

/**
 * Returns the line width of stdout or stderr in characters: that of the terminal, or the variable COLUMNS. Returns
 * Infinity if neither is set, since output to a file or another program is not wrapped.
 */
export function widthOf(stream: NodeJS.WriteStream | WriteStream): number {
  const columns = stream.isTTY ? stream.columns : Number(readEnvironment().COLUMNS);
  return columns > 0 ? Math.max(columns, minWidth) : Infinity;
}

export function lengthOf(text: string): number {
  return text.replace(styles, "").length;
}

/** Wraps a text at `width`, between words if possible. Styles continue across lines. */
export function wrap(text: string, width: number, isBreakable = true): string[] {
  if (lengthOf(text) <= width) {
    return [text];
  }
  const words = text.split(" ").flatMap((word) => (isBreakable ? breakWord(word, width) : [word]));
  const lines: string[] = [];
  let line: string | undefined;
  for (const word of words) {
    const extended: string = line === undefined ? word : `${line} ${word}`;
    if (line === undefined || lengthOf(extended) <= width) {
      line = extended;
    } else {
      lines.push(line);
      line = word;
    }
  }
  return carryStyles([...lines, line ?? ""]);
}

/** Breaks a word into parts of at most `width` visible characters. */
function breakWord(word: string, width: number): string[] {
  if (lengthOf(word) <= width) {
    return [word];
  }
  const characters = word.match(/\u001b\[\d+(?:;\d+)*m|[^]/gu) ?? [];
  const parts: string[] = [""];
  for (const character of characters) {
    const part = parts.pop()!;
    if (lengthOf(part + character) > width) {
      parts.push(part, character);
    } else {
      parts.push(part + character);
    }
  }
  return parts;
}

/** Ends active styles at the end of each line, and restores them on the next line. */
function carryStyles(lines: readonly string[]): string[] {
  let active = "";
  return lines.map((line) => {
    const carried = active;
    for (const [style] of line.matchAll(styles)) {
      // Codes 0, 22 to 29 and 39 end a style. Text here has one active style at a time.
      active = /\[(0|2[2-9]|39)m$/.test(style) ? "" : active + style;
    }
    return `${carried}${line}${active === "" ? "" : "\u001b[0m"}`;
  });
}
