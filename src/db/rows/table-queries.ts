/** What is asked of a table whose rows are staged, and how what changed is stored. */
import { deleteRows, insertRows, updateRows } from "./bulk-changes.js";
import type { BulkValue, ColumnKind } from "./bulk-insert.js";
import type { Queries } from "../queries/database.js";

/** A table whose rows are staged. */
export interface TableShape<Row> {
  readonly name: string;
  /** Rows that have the same text here belong together. */
  readonly group: keyof Row & string;
  /** Columns that tell the rows of a group apart, and in whose order they stand; none where a group is one row. */
  readonly within: readonly (keyof Row & string)[];
  readonly columns: Readonly<Record<keyof Row & string, ColumnKind>>;
  /** Those that may become others while the row stays. */
  readonly changing: readonly (keyof Row & string)[];
  /** Throws where the row is not what was stored. */
  readonly check: (row: Row) => void;
}

/** The part of a row's key that stands after its group. */
export type WithinKey = readonly (string | number)[];

/** The end of an order at which is looked. */
export type Side = "first" | "last";

/** What of a table is stored, in this order. */
export interface TableChanges<Row> {
  /** Names of groups all of whose rows go, before others come. */
  readonly cleared: readonly string[];
  /** Keys of rows that go, before others come. */
  readonly removed: readonly (readonly [group: string, key: string])[];
  readonly inserted: readonly Row[];
  readonly updated: readonly Row[];
}

/** The queries of one table. */
export function createTableQueries<Row extends object>(db: Queries, shape: TableShape<Row>) {
  const { name: table, group, within } = shape;
  const { list } = db.dialect;
  const kinds: Readonly<Record<string, ColumnKind>> = shape.columns;
  const pick = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, kinds[name]!]));
  const valuesOf = (row: Row, names: readonly string[]): BulkValue[] =>
    names.map((name) => (row as Readonly<Record<string, BulkValue>>)[name]!);
  const all = Object.keys(kinds);
  const key = [group, ...within];
  const select = (columns: readonly string[]): string => `SELECT ${columns.map((name) => `t.${name}`).join(", ")}`;
  const where = (names: readonly string[]): string => names.map((name) => `t.${name} = ?`).join(" AND ");
  const rows = <Of>(text: string, values: readonly (string | number)[]): Promise<Of[]> =>
    db.prepare<Of>(text)(...values);

  return {
    /** Rows of these groups; the list drives the query. */
    ofGroups: (names: readonly string[]) =>
      rows<Row>(`${select(all)} FROM ${list.table} CROSS JOIN ${table} AS t WHERE t.${group} = ${list.text}`, [
        JSON.stringify(names),
      ]),
    one: async (name: string, at: WithinKey): Promise<Row | undefined> =>
      (await rows<Row>(`${select(all)} FROM ${table} AS t WHERE ${where(key)}`, [name, ...at]))[0],
    by: async (column: string, name: string, text: string): Promise<Row | undefined> =>
      (await rows<Row>(`${select(all)} FROM ${table} AS t WHERE ${where([group, column])}`, [name, text]))[0],
    list: (name: string, prefix: readonly number[], columns: readonly string[] = all) =>
      rows<Row>(`${select(columns)} FROM ${table} AS t WHERE ${where([group, ...within.slice(0, prefix.length)])}`, [
        name,
        ...prefix,
      ]),
    count: async (name: string): Promise<number> =>
      (await rows<{ count: number }>(`SELECT count(*) AS count FROM ${table} AS t WHERE ${where([group])}`, [name]))[0]!
        .count,
    async edge(asked: {
      readonly name: string;
      readonly prefix: readonly number[];
      readonly side: Side;
      readonly beyond: number | undefined;
      readonly limit: number;
    }): Promise<number[]> {
      const { name, prefix, side, beyond, limit } = asked;
      const column = within[prefix.length]!;
      const [sign, order] = side === "first" ? [">", "ASC"] : ["<", "DESC"];
      const bound = beyond === undefined ? "" : ` AND t.${column} ${sign} ?`;
      const found = await rows<{ at: number }>(
        `SELECT t.${column} AS at FROM ${table} AS t WHERE ${where([group, ...within.slice(0, prefix.length)])}${bound}
          ORDER BY t.${column} ${order} LIMIT ?`,
        [name, ...prefix, ...(beyond === undefined ? [] : [beyond]), limit],
      );
      return found.map(({ at }) => at);
    },
    async store({ cleared, removed, inserted, updated }: TableChanges<Row>): Promise<void> {
      const { changing } = shape;
      const keyValues = ([name, at]: readonly [string, string]) =>
        within.length === 0 ? [name] : [name, ...at.split(":")];
      await deleteRows(
        db,
        table,
        pick([group]),
        cleared.map((name) => [name]),
      );
      await deleteRows(db, table, pick(key), removed.map(keyValues));
      await insertRows(
        db,
        table,
        pick(all),
        mapLazily(inserted, (row) => valuesOf(row, all)),
      );
      const columns = { key: pick(key), columns: pick(changing) };
      await updateRows(
        db,
        table,
        columns,
        mapLazily(updated, (row) => valuesOf(row, [...key, ...changing])),
      );
    },
  };
}

function* mapLazily<T, R>(items: readonly T[], map: (item: T) => R): Generator<R, void> {
  for (const item of items) {
    yield map(item);
  }
}
