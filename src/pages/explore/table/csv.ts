/** Writes tables as CSV files (RFC 4180). */
import { h } from "../dom.js";

/** Value of a cell. Null and undefined are empty cells. */
export type CsvValue = string | number | null | undefined;

/** First characters of a text that a spreadsheet takes for a formula, with their full-width forms. */
const formula = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]/;

/** Returns one row. Texts that a spreadsheet would run as a formula start with an apostrophe. */
export function csvRow(values: readonly CsvValue[]): string {
  return `${values.map(csvCell).join(",")}\r\n`;
}

function csvCell(value: CsvValue): string {
  if (typeof value === "number") {
    return String(value);
  }
  const text = value ?? "";
  const safe = formula.test(text) ? `'${text}` : text;
  return /[",\r\n;\t']/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Offers a file for download. The mark at its start tells spreadsheets that it is UTF-8. */
export function downloadCsv(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }));
  const anchor = h("a", { href: url, download: `${name}.csv`, hidden: true });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
