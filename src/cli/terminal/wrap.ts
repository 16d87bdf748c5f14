/** How wide what is printed may be, and lines that are broken to fit. */
import type { WriteStream } from "node:tty";
import { readEnvironment } from "../../config/variables.js";

/** A word that is longer than this may be broken. */
const minWidth = 20;
/** Switches colours and styles of a terminal on and off; takes no room. */
const styles = /\u001b\[\d+(?:;\d+)*m/g;

/**
 * How many characters a line of stdout, or stderr, has room for: those of its terminal, or of the variable COLUMNS.
 * Unlimited where neither says: what goes to a file or another program is not broken.
 */
export function widthOf(stream: NodeJS.WriteStream | WriteStream): number {
  const columns = stream.isTTY ? stream.columns : Number(readEnvironment().COLUMNS);
  return columns > 0 ? Math.max(columns, minWidth) : Infinity;
}

/** How much room a text takes on a line. */
export function lengthOf(text: string): number {
  return text.replace(styles, "").length;
}

/**
 * Breaks a text into lines of at most this width, between words where it can. Its styles go on from line to line.
 *
 * @param isBreakable whether a word that is longer than a line is broken.
 */
export function wrap(text: string, width: number, isBreakable = true): string[] {
  if (lengthOf(text) <= width) {
    return [text];
  }
  const words = text.split(" ").flatMap((word) => (isBreakable ? cut(word, width) : [word]));
  const lines: string[] = [];
  let line: string | undefined;
  for (const word of words) {
    const longer: string = line === undefined ? word : `${line} ${word}`;
    if (line === undefined || lengthOf(longer) <= width) {
      line = longer;
    } else {
      lines.push(line);
      line = word;
    }
  }
  return carryStyles([...lines, line ?? ""]);
}

function cut(word: string, width: number): string[] {
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

/** Ends at each line's end what is on, and switches it on again on the next one. */
function carryStyles(lines: readonly string[]): string[] {
  let on = "";
  return lines.map((line) => {
    const before = on;
    for (const [style] of line.matchAll(styles)) {
      // 0, 22 to 29 and 39 switch off; a text here has one style at a time.
      on = /\[(0|2[2-9]|39)m$/.test(style) ? "" : on + style;
    }
    return `${before}${line}${on === "" ? "" : "\u001b[0m"}`;
  });
}
