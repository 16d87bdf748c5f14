/** Formats rows as a table. */
import type { Result, Row } from "./row.js";

/** Width of the column with the ratio and its baseline. */
const comparedWidth = 24;
const indent = "    ";

/**
 * Formats a line for each row. On a terminal, figures that do not fit are wrapped. With another build, its ratio comes
 * first.
 */
export function formatRows(rows: readonly Row[], columns = Infinity): string {
  const hasBefore = rows.some(({ before }) => before !== undefined);
  const nameWidth = Math.max(...rows.map(({ name }) => name.length));
  const head = hasBefore
    ? `${"".padEnd(nameWidth)}  ${"before".padEnd(8)}after; figures of before are in brackets\n`
    : "";
  return `${head}${rows.map((row) => formatRow(row, { hasBefore, nameWidth, columns })).join("")}`;
}

interface Layout {
  readonly hasBefore: boolean;
  readonly nameWidth: number;
  readonly columns: number;
}

function formatRow(row: Row, { hasBefore, nameWidth, columns }: Layout): string {
  const { name, baseline, before } = row;
  const then = hasBefore ? ratioOf(before).padEnd(8) : "";
  const compared = row.ratio === undefined ? ratioOf(row) : `${ratioOf(row)} of ${baseline ?? "the baseline"}`;
  if (row.details !== undefined) {
    return (
      [name, ...row.details.map((detail) => `${indent}${detail}`)].map((text) => `${text}\n`).join("") + notesOf(row)
    );
  }
  const details = figuresOf(row, before);
  const line = `${name.padEnd(nameWidth)}  ${then}${compared.padEnd(comparedWidth)}  `;
  if (`${line}${details.join(", ")}`.length <= columns) {
    return `${line}${details.join(", ")}`.trimEnd() + "\n" + notesOf(row);
  }
  return `${line.trimEnd()}\n${wrap(details, columns)}${notesOf(row)}`;
}

function ratioOf(result: Result | undefined): string {
  return result?.ratio?.toFixed(2) ?? (result?.note === undefined ? "" : "–");
}

function figuresOf(row: Row, before: Result | undefined): string[] {
  const units = new Set([...Object.keys(row.figures), ...Object.keys(before?.figures ?? {})]);
  return [...units].map((unit) => {
    const [now, then] = [row.figures[unit], before?.figures[unit]];
    const figure = now === undefined ? "–" : formatFigure(now);
    return then === undefined ? `${unit} ${figure}` : `${unit} ${figure} (${formatFigure(then)})`;
  });
}

function notesOf({ note, before }: Row): string {
  const beforeNote = before?.note === undefined ? [] : [`before: ${before.note}`];
  return [...(note === undefined ? [] : [note]), ...beforeNote].map((text) => `${indent}${text}\n`).join("");
}

function wrap(details: readonly string[], columns: number): string {
  const lines: string[] = [];
  for (const [i, detail] of details.entries()) {
    const text = i === details.length - 1 ? detail : `${detail}, `;
    const last = lines.at(-1);
    if (last !== undefined && last.length + text.trimEnd().length <= columns) {
      lines[lines.length - 1] = last + text;
    } else {
      lines.push(indent + text);
    }
  }
  return lines.map((line) => `${line.trimEnd()}\n`).join("");
}

/** Formats a figure with three significant digits, or as an integer. */
export function formatFigure(figure: number): string {
  return figure >= 100 || Number.isInteger(figure) ? Math.round(figure).toLocaleString("en") : figure.toPrecision(3);
}
