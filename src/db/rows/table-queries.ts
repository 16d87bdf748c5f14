/** Queries of a table with a write buffer, and the statements that store its changes. */
import { type BulkValue, type ColumnKind, deleteRows, insertRows, updateRows } from "./bulk-changes.js";
import type { Queries } from "../queries/database.js";

/** Description of a table with a write buffer. */
export interface TableShape<Row> {
  readonly name: string;
  /** Column that groups rows: rows with the same text belong to one group. */
  readonly group: keyof Row & string;
  /** Key columns that order the rows of a group; empty if a group has one row. */
  readonly within: readonly (keyof Row & string)[];
  readonly columns: Readonly<Record<keyof Row & string, ColumnKind>>;
  /** Columns that an update may change. */
  readonly changing: readonly (keyof Row & string)[];
  /** Throws CorruptionError if the row is corrupt. */
  readonly check: (row: Row) => void;
}

/** Key of a row within its group. */
export type WithinKey = readonly (string | number)[];

/** End of the key order at which a search starts. */
export type Side = "first" | "last";

/** Changes of a table, stored in the order of these members. */
export interface TableChanges<Row> {
  /** Names of groups to delete, before rows are inserted. */
  readonly cleared: readonly string[];
  /** Keys of rows to delete, before rows are inserted. */
  readonly removed: readonly (readonly [group: string, key: string])[];
  readonly inserted: readonly Row[];
  readonly updated: readonly Row[];
}

export function createTableQueries<Row extends object>(db: Queries, shape: TableShape<Row>) {
  const { name: table, group, within } = shape;
  const { list } = db.dialect;
  const kinds: Readonly<Record<string, ColumnKind>> = shape.columns;
  const pick = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, kinds[name]!]));
  const valuesOf = (row: Row, names: readonly string[]): BulkValue[] =>
    names.map((name) => (row as Readonly<Record<string, BulkValue>>)[name]!);
  const allColumns = Object.keys(kinds);
  const key = [group, ...within];
  const select = (columns: readonly string[]): string => `SELECT ${columns.map((name) => `t.${name}`).join(", ")}`;
  const where = (names: readonly string[]): string => names.map((name) => `t.${name} = ?`).join(" AND ");
  const rows = <Of>(text: string, values: readonly (string | number)[]): Promise<Of[]> =>
    db.prepare<Of>(text)(...values);

  return {
    /** Reads the rows of groups. CROSS JOIN makes the engine iterate the list of names and look up the rows. */
    ofGroups: (names: readonly string[]) =>
      rows<Row>(`${select(allColumns)} FROM ${list.table} CROSS JOIN ${table} AS t WHERE t.${group} = ${list.text}`, [
        JSON.stringify(names),
      ]),
    one: async (name: string, at: WithinKey): Promise<Row | undefined> =>
      (await rows<Row>(`${select(allColumns)} FROM ${table} AS t WHERE ${where(key)}`, [name, ...at]))[0],
    byColumn: async (column: string, name: string, text: string): Promise<Row | undefined> =>
      (await rows<Row>(`${select(allColumns)} FROM ${table} AS t WHERE ${where([group, column])}`, [name, text]))[0],
    list: (name: string, prefix: readonly number[], columns: readonly string[] = allColumns) =>
      rows<Row>(`${select(columns)} FROM ${table} AS t WHERE ${where([group, ...within.slice(0, prefix.length)])}`, [
        name,
        ...prefix,
      ]),
    count: async (name: string): Promise<number> =>
      (await rows<{ count: number }>(`SELECT count(*) AS count FROM ${table} AS t WHERE ${where([group])}`, [name]))[0]!
        .count,
    /** Reads the next key part of up to `limit` rows, from the given side of the key order. */
    async seek(range: {
      readonly name: string;
      readonly prefix: readonly number[];
      readonly side: Side;
      readonly beyond: number | undefined;
      readonly limit: number;
    }): Promise<number[]> {
      const { name, prefix, side, beyond, limit } = range;
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
    /** Stores the changes, in a few statements for all rows. */
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
        pick(allColumns),
        mapLazily(inserted, (row) => valuesOf(row, allColumns)),
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
