/**
 * What the engines say differently, side by side. All other SQL of the house is written in words that both have. What is
 * given and what comes back are SQL expressions, not values.
 */

/** The engines. */
export type Engine = "sqlite" | "postgresql";

/** The words of an engine. */
export interface Dialect {
  readonly list: ListTable;
  readonly nameSearch: NameSearch;
  readonly schema: SchemaWords;
  /** The bytes that a text of hex digits says. */
  readonly bytesOf: (hex: string) => string;
  /** Bytes as lower-case hex digits. */
  readonly hexOf: (bytes: string) => string;
  /** Of all rows: their texts, with commas between them. */
  readonly joinTexts: (text: string) => string;
  /** Now, in milliseconds since the epoch, also while a transaction goes on: by the server's clock where there is one. */
  readonly nowMs: string;
  /** Has the server end a transaction whose process does not go on with it; undefined where nobody waits for it. */
  readonly boundTransaction: string | undefined;
  /**
   * As the first query of a transaction: all that it reads is of one moment, that of the next query. Undefined where every
   * transaction is so.
   */
  readonly readOneMoment: string | undefined;
  /** Has a column that numbers new rows go on after those that are there; undefined where it does so by itself. */
  readonly goOnNumbering: ((table: string, column: string) => string) | undefined;
  /** After all programs were taken out: empties the index of their names; undefined where it follows by itself. */
  readonly forgetNames: string | undefined;
  /** Ends a SELECT whose rows are to be changed: without those that somebody else has locked, where others may. */
  readonly lockFree: string;
  /** The larger one of two numbers. */
  readonly greater: (a: string, b: string) => string;
  /** The smaller one of two numbers. */
  readonly lesser: (a: string, b: string) => string;
  /** JSON text of an object with these members. */
  readonly jsonObject: (members: Readonly<Record<string, string>>) => string;
  /** An array of these values, for {@link jsonArray}. */
  readonly jsonList: (values: readonly string[]) => string;
  /** JSON text of an array, empty where there are no rows. `item` is a {@link jsonList}. */
  readonly jsonArray: (rows: { readonly item: string; readonly from: string; readonly orderBy: string }) => string;
}

/** A list that is handed over as one JSON text, as a table `k`. */
export interface ListTable {
  /** What stands in FROM, with a question mark for the text. */
  readonly table: string;
  /** Position in the list, from 0. */
  readonly slot: string;
  /** An item that is a string. The parts of one that is a list are `k.value ->> 0` and so on, with every engine. */
  readonly text: string;
}

/** Looks for a text anywhere in the folded names of programs, `p`. Each condition has a question mark for its term. */
export interface NameSearch {
  /** Looks at every name. */
  readonly plain: { readonly where: string; term(text: string): string };
  /** The same by the index of names, for texts of three characters and more. */
  readonly indexed: {
    readonly from: string;
    readonly where: string;
    /** The program's id, as the index has it: to sort by. */
    readonly id: string;
    term(text: string): string;
  };
}

/** What migrations need. They were released: what they make of this must not change. */
export interface SchemaWords {
  /** Makes others that would migrate at the same time wait; undefined where a transaction that writes does so by itself. */
  readonly migrationLock: string | undefined;
  /** Type of a column of bytes. */
  readonly bytes: string;
  /** After the columns of a table: its rows are kept in the order of its key, where the engine can. */
  readonly inOrderOfKey: string;
  /**
   * Indexes every three characters of a program's name, so that a search looks at the programs that have them and at no
   * others. Names never change, and programs are marked as deleted, never removed.
   */
  readonly indexNames: readonly string[];
}

/** What LIKE takes to find a text anywhere. */
function likePattern(text: string): string {
  return `%${text.replace(/[%_\\]/g, "\\$&")}%`;
}

const membersOf = (members: Readonly<Record<string, string>>): string =>
  Object.entries(members)
    .map(([name, value]) => `'${name}', ${value}`)
    .join(", ");

const sqlite: Dialect = {
  list: { table: "json_each(?) AS k", slot: "k.key", text: "k.value" },
  nameSearch: {
    plain: { where: "p.name_folded LIKE ? ESCAPE '\\'", term: likePattern },
    indexed: {
      from: "program_names JOIN programs p ON p.id = program_names.rowid",
      where: "program_names MATCH ?",
      id: "program_names.rowid",
      // A phrase of FTS5.
      term: (text) => `"${text.replaceAll('"', '""')}"`,
    },
  },
  schema: {
    migrationLock: undefined,
    bytes: "BLOB",
    inOrderOfKey: " WITHOUT ROWID",
    indexNames: [
      `CREATE VIRTUAL TABLE program_names USING fts5 (
    name_folded, content = 'programs', content_rowid = 'id', columnsize = 0, tokenize = 'trigram case_sensitive 1'
  )`,
      `CREATE TRIGGER program_names_insert AFTER INSERT ON programs BEGIN
    INSERT INTO program_names (rowid, name_folded) VALUES (new.id, new.name_folded);
  END`,
    ],
  },
  bytesOf: (hex) => `unhex(${hex})`,
  hexOf: (bytes) => `lower(hex(${bytes}))`,
  joinTexts: (text) => `group_concat(${text})`,
  nowMs: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
  boundTransaction: undefined,
  readOneMoment: undefined,
  goOnNumbering: undefined,
  forgetNames: "INSERT INTO program_names (program_names) VALUES ('delete-all')",
  lockFree: "",
  greater: (a, b) => `max(${a}, ${b})`,
  lesser: (a, b) => `min(${a}, ${b})`,
  jsonObject: (members) => `json_object(${membersOf(members)})`,
  jsonList: (values) => `json_array(${values.join(", ")})`,
  jsonArray: ({ item, from, orderBy }) =>
    `(SELECT json_group_array(json(item)) FROM (SELECT ${item} AS item FROM ${from} ORDER BY ${orderBy}))`,
};

const postgresql: Dialect = {
  list: {
    table: "json_array_elements(CAST(? AS json)) WITH ORDINALITY AS k(value, key)",
    slot: "k.key - 1",
    text: "k.value #>> '{}'",
  },
  nameSearch: {
    // Its index needs the escape character that it has by itself, the backslash; SQLite has none by itself.
    plain: { where: "p.name_folded LIKE ?", term: likePattern },
    indexed: { from: "programs p", where: "p.name_folded LIKE ?", id: "p.id", term: likePattern },
  },
  schema: {
    // Of several nodes that start at once, one migrates and the others wait.
    migrationLock: "SELECT pg_advisory_xact_lock(5355053550)",
    bytes: "bytea",
    inOrderOfKey: "",
    indexNames: [
      "CREATE EXTENSION IF NOT EXISTS pg_trgm",
      "CREATE INDEX program_names ON programs USING gin (name_folded gin_trgm_ops)",
    ],
  },
  bytesOf: (hex) => `decode(${hex}, 'hex')`,
  hexOf: (bytes) => `encode(${bytes}, 'hex')`,
  joinTexts: (text) => `string_agg(${text}, ',')`,
  nowMs: "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)",
  boundTransaction: "SET LOCAL idle_in_transaction_session_timeout = 10000",
  readOneMoment: "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
  goOnNumbering: (table, column) =>
    `SELECT setval(pg_get_serial_sequence('${table}', '${column}'), coalesce(max(${column}), 1), max(${column}) IS NOT NULL)
      FROM ${table}`,
  forgetNames: undefined,
  lockFree: " FOR UPDATE SKIP LOCKED",
  greater: (a, b) => `greatest(${a}, ${b})`,
  lesser: (a, b) => `least(${a}, ${b})`,
  jsonObject: (members) => `CAST(json_build_object(${membersOf(members)}) AS text)`,
  jsonList: (values) => `json_build_array(${values.join(", ")})`,
  jsonArray: ({ item, from, orderBy }) =>
    `(SELECT CAST(coalesce(json_agg(CAST(${item} AS json) ORDER BY ${orderBy}), '[]') AS text) FROM ${from})`,
};

/** The words, by engine. */
export const dialects: Readonly<Record<Engine, Dialect>> = { sqlite, postgresql };
