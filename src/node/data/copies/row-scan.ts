/** Scans the rows of a table in key order, in pages of about the same size in bytes. */
import { hash } from "node:crypto";
import type { CopiedTable } from "./copied-tables.js";
import type { Queries } from "../../../db/queries/database.js";

export type RowValue = string | number | boolean | Buffer | null;
export type Row = Readonly<Record<string, RowValue>>;

export type EncodedKey = readonly (string | number | { readonly hex: string })[];

/** Target size of a page in bytes. Rows range from fifty bytes to a mebibyte. */
const pageBytes = 2 * 1024 * 1024;
const [firstRows, maxRows] = [16, 2_000];

export async function* scanRows(
  db: Queries,
  table: CopiedTable,
  after: EncodedKey | null,
): AsyncGenerator<Row[], void> {
  let last = after;
  let limit = firstRows;
  for (;;) {
    const rows = await readPage(db, table, last, limit);
    if (rows.length === 0) {
      return;
    }
    yield rows;
    last = keyOf(table, rows.at(-1)!);
    const totalBytes = rows.reduce((sum, row) => sum + estimateBytes(row), 0);
    limit = Math.max(1, Math.min(maxRows, 2 * limit, Math.floor((pageBytes * rows.length) / Math.max(totalBytes, 1))));
  }
}

async function readPage(db: Queries, { name, key }: CopiedTable, after: EncodedKey | null, limit: number) {
  return await db.rows<Row>((sql) => {
    const query = sql(name)
      .orderBy([...key])
      .limit(limit)
      .select("*");
    return after === null
      ? query
      : query.whereRaw(`(${key.join(", ")}) > (${key.map(() => "?").join(", ")})`, after.map(decode));
  });
}

export function keyOf({ key }: CopiedTable, row: Row): EncodedKey {
  return key.map((column) => {
    const value = row[column];
    return Buffer.isBuffer(value) ? { hex: value.toString("hex") } : (value as string | number);
  });
}

function decode(value: EncodedKey[number]): string | number | Buffer {
  return typeof value === "object" ? Buffer.from(value.hex, "hex") : value;
}

function estimateBytes(row: Row): number {
  return Object.values(row).reduce<number>(
    (sum, value) => sum + (typeof value === "string" || Buffer.isBuffer(value) ? value.length : 8),
    0,
  );
}

/** Converts a row to its form in the copy, independent of the engine. */
export function normalize({ booleans = [], overrides = {} }: CopiedTable, row: Row): Row {
  return { ...row, ...Object.fromEntries(booleans.map((column) => [column, Boolean(row[column])])), ...overrides };
}

/**
 * Digest of the content of rows, independent of their order, because engines sort texts differently. Rows must be
 * distinct, since equal rows cancel out (XOR). A table with a key has no equal rows.
 */
export class RowsDigest {
  readonly #sum: Buffer;

  /** @param from text of a digest to continue. */
  constructor(from = "0".repeat(64)) {
    this.#sum = Buffer.from(from, "hex");
  }

  add(rows: readonly Row[]): void {
    for (const row of rows) {
      const columns = Object.keys(row).sort();
      const content = JSON.stringify(columns.map((column) => [column, textOf(row[column]!)]));
      hash("sha256", content, "buffer").forEach((byte, i) => (this.#sum[i]! ^= byte));
    }
  }

  text(): string {
    return this.#sum.toString("hex");
  }
}

function textOf(value: RowValue): string | number | boolean | null {
  return Buffer.isBuffer(value) ? value.toString("hex") : value;
}
