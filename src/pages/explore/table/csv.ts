/** Writes tables as CSV files (RFC 4180). */
import { h } from "../dom.js";

/** Value of a cell. Null and undefined are empty cells. */
export type CsvValue = string | number | null | undefined;

/** Matches texts that a spreadsheet interprets as a formula, including full-width forms of the first characters. */
const formula = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]/;

/** Returns one row. An apostrophe before a text prevents that a spreadsheet runs it as a formula. */
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

/** Offers a table for download. The mark at its start makes spreadsheets read it as UTF-8. */
export function downloadCsv(name: string, text: string): void {
  saveFile(`${name}.csv`, "text/csv;charset=utf-8", `\ufeff${text}`);
}

/** Offers a file for download. */
export function saveFile(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const anchor = h("a", { href: url, download: name, hidden: true });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
