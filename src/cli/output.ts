/** What the commands print: aligned tables, colour where somebody looks, and failures with an exit code. */
import { styleText } from "node:util";

/** A failure with an exit code of its own; the message is one sentence, or nothing when all is printed already. */
export class ExitError extends Error {
  constructor(
    message: string,
    readonly exitCode: number,
  ) {
    super(message);
  }
}

/** Writes lines to stdout. */
export function print(...lines: string[]): void {
  process.stdout.write(`${lines.join("\n")}\n`);
}

/** Colours text where stdout is a terminal that wants colour (NO_COLOR, FORCE_COLOR). */
export function paint(format: Parameters<typeof styleText>[0], text: string): string {
  return process.stdout.isTTY && process.stdout.hasColors() ? styleText(format, text) : text;
}

/** Rows with their columns aligned; the first row is the heading. Colours do not disturb the alignment. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths = rows.reduce<number[]>(
    (widest, row) => row.map((cell, i) => Math.max(widest[i] ?? 0, visibleLength(cell))),
    [],
  );
  return rows.map((row, rowNumber) => {
    const line = row
      .map((cell, i) => (i === row.length - 1 ? cell : cell + " ".repeat(widths[i]! - visibleLength(cell))))
      .join("  ")
      .trimEnd();
    return rowNumber === 0 ? paint("dim", line) : line;
  });
}

function visibleLength(text: string): number {
  return text.replace(/\u001b\[\d+m/g, "").length;
}

/** `3 d 4 h`, `5 min 6 s`, `0.7 s`. */
export function duration(seconds: number): string {
  if (seconds < 10) {
    return `${Math.round(seconds * 10) / 10} s`;
  }
  const units: [string, number][] = [
    ["d", 86_400],
    ["h", 3_600],
    ["min", 60],
    ["s", 1],
  ];
  let rest = Math.round(seconds);
  const parts: string[] = [];
  for (const [unit, size] of units) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) {
      parts.push(`${count} ${unit}`);
    }
  }
  return parts.slice(0, 2).join(" ");
}
