/**
 * SQL that differs between the engines, in one table. All other SQL is common to both. Arguments and results are SQL
 * expressions, not values.
 */

export type Engine = "sqlite" | "postgresql";

export interface Dialect {
  readonly list: ListTable;
  readonly nameSearch: NameSearch;
  readonly schema: SchemaDialect;
  readonly bytesOf: (hex: string) => string;
  /**
   * Current time in milliseconds since the epoch, not fixed at the start of a transaction. A server uses its own clock.
   */
  readonly nowMs: string;
  /**
   * Statements for a transaction that this node acknowledges: the server ends it if it is idle for 10 s, and its commit
   * waits for the disk, even if the role or the database sets synchronous_commit = off. They are local to the
   * transaction, because a pooler may give each transaction another connection. Undefined for an embedded engine.
   */
  readonly prepareWrite: string | undefined;
  /**
   * First statement of a transaction with snapshot reads; the snapshot starts at the next query. Undefined if every
   * transaction of the engine reads one snapshot.
   */
  readonly startSnapshotReads: string | undefined;
  /**
   * Returns the statement that sets the sequence of a column after its largest value; undefined if the engine needs
   * none.
   */
  readonly advanceSequence: ((table: string, column: string) => string) | undefined;
  /**
   * Statement that empties the index of names after all programs were deleted; undefined if the index updates itself.
   */
  readonly clearNameIndex: string | undefined;
  /**
   * End of a SELECT of rows to be changed. Skips rows that another transaction has locked, if the engine has row locks.
   */
  readonly skipLocked: string;
  readonly greater: (a: string, b: string) => string;
  readonly lesser: (a: string, b: string) => string;
  /** Returns the JSON text of an object with these members. */
  readonly jsonObject: (members: Readonly<Record<string, string>>) => string;
  /** Returns an array of these values, for {@link jsonArray}. */
  readonly jsonList: (values: readonly string[]) => string;
  /** Returns the JSON text of an array of all rows; empty if there are none. `item` is a {@link jsonList}. */
  readonly jsonArray: (rows: JsonRows) => string;
  /**
   * Returns the JSON text of an array of texts, each the {@link jsonArray} of the rows with one value of `portion`, in
   * its order. So a reader has the objects of one portion at a time in memory.
   */
  readonly jsonPortions: (rows: JsonRows & { readonly portion: string }) => string;
}

/** Rows of a query, as JSON. */
export interface JsonRows {
  readonly item: string;
  readonly from: string;
  readonly orderBy: string;
}

/** List that is passed as one JSON text and read as table `k`. */
export interface ListTable {
  /** Table for the FROM clause, with a placeholder for the JSON text. */
  readonly table: string;
  /** Position in the list, from 0. */
  readonly slot: string;
  /** Item that is a string. In every engine, the parts of an item that is a list are `k.value ->> 0` and so on. */
  readonly text: string;
}

/** Substring search in the folded names of programs, `p`. Each condition has a placeholder for its term. */
export interface NameSearch {
  /** Search that scans all names. */
  readonly plain: { readonly where: string; term(text: string): string };
  /** Search by the index of names, for texts of at least three characters. */
  readonly indexed: {
    readonly from: string;
    readonly where: string;
    /** Id of the program in the index, to sort by. */
    readonly id: string;
    term(text: string): string;
  };
}

/** SQL for migrations. Released migrations use it, so its results must not change. */
export interface SchemaDialect {
  /** Statement that blocks concurrent migrations; undefined if a writing transaction does so itself. */
  readonly migrationLock: string | undefined;
  /** Type of a column of bytes. */
  readonly bytes: string;
  /** Option at the end of CREATE TABLE that stores rows in key order, if the engine has one. */
  readonly inKeyOrder: string;
  /**
   * Statements that create a trigram index of program names, so that a search reads only matching programs. Names never
   * change, and programs are marked as deleted, never removed.
   */
  readonly createNameIndex: readonly string[];
}

/** Returns the LIKE pattern that finds a text anywhere. */
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
      // Phrase of FTS5.
      term: (text) => `"${text.replaceAll('"', '""')}"`,
    },
  },
  schema: {
    migrationLock: undefined,
    bytes: "BLOB",
    inKeyOrder: " WITHOUT ROWID",
    createNameIndex: [
      `CREATE VIRTUAL TABLE program_names USING fts5 (
    name_folded, content = 'programs', content_rowid = 'id', columnsize = 0, tokenize = 'trigram case_sensitive 1'
  )`,
      `CREATE TRIGGER program_names_insert AFTER INSERT ON programs BEGIN
    INSERT INTO program_names (rowid, name_folded) VALUES (new.id, new.name_folded);
  END`,
    ],
  },
  bytesOf: (hex) => `unhex(${hex})`,
  nowMs: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
  prepareWrite: undefined,
  startSnapshotReads: undefined,
  advanceSequence: undefined,
  clearNameIndex: "INSERT INTO program_names (program_names) VALUES ('delete-all')",
  skipLocked: "",
  greater: (a, b) => `max(${a}, ${b})`,
  lesser: (a, b) => `min(${a}, ${b})`,
  jsonObject: (members) => `json_object(${membersOf(members)})`,
  jsonList: (values) => `json_array(${values.join(", ")})`,
  jsonArray: ({ item, from, orderBy }) =>
    `(SELECT json_group_array(json(item)) FROM (SELECT ${item} AS item FROM ${from} ORDER BY ${orderBy}))`,
  // Without the empty text, a part would become an array in the array.
  jsonPortions: ({ item, from, orderBy, portion }) =>
    `(SELECT json_group_array(part || '' ORDER BY portion) FROM (SELECT ${portion} AS portion,
      json_group_array(json(${item}) ORDER BY ${orderBy}) AS part FROM ${from} GROUP BY 1))`,
};

const postgresql: Dialect = {
  list: {
    table: "json_array_elements(CAST(? AS json)) WITH ORDINALITY AS k(value, key)",
    slot: "k.key - 1",
    text: "k.value #>> '{}'",
  },
  nameSearch: {
    // The default escape character of PostgreSQL is the backslash, and the index needs the default. SQLite has no
    // default.
    plain: { where: "p.name_folded LIKE ?", term: likePattern },
    indexed: { from: "programs p", where: "p.name_folded LIKE ?", id: "p.id", term: likePattern },
  },
  schema: {
    // If several nodes start at once, one migrates and the others wait.
    migrationLock: "SELECT pg_advisory_xact_lock(5355053550)",
    bytes: "bytea",
    inKeyOrder: "",
    createNameIndex: [
      "CREATE EXTENSION IF NOT EXISTS pg_trgm",
      "CREATE INDEX program_names ON programs USING gin (name_folded gin_trgm_ops)",
    ],
  },
  bytesOf: (hex) => `decode(${hex}, 'hex')`,
  nowMs: "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)",
  prepareWrite: `SET LOCAL idle_in_transaction_session_timeout = 10000;
    SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'`,
  startSnapshotReads: "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
  advanceSequence: (table, column) =>
    `SELECT setval(pg_get_serial_sequence('${table}', '${column}'), coalesce(max(${column}), 1), max(${column}) IS NOT NULL)
      FROM ${table}`,
  clearNameIndex: undefined,
  skipLocked: " FOR UPDATE SKIP LOCKED",
  greater: (a, b) => `greatest(${a}, ${b})`,
  lesser: (a, b) => `least(${a}, ${b})`,
  jsonObject: (members) => `CAST(json_build_object(${membersOf(members)}) AS text)`,
  jsonList: (values) => `json_build_array(${values.join(", ")})`,
  jsonArray: ({ item, from, orderBy }) =>
    `(SELECT CAST(coalesce(json_agg(CAST(${item} AS json) ORDER BY ${orderBy}), '[]') AS text) FROM ${from})`,
  jsonPortions: ({ item, from, orderBy, portion }) =>
    `(SELECT CAST(coalesce(json_agg(part ORDER BY portion), '[]') AS text) FROM (SELECT ${portion} AS portion,
      CAST(json_agg(CAST(${item} AS json) ORDER BY ${orderBy}) AS text) AS part FROM ${from} GROUP BY 1) AS portions)`,
};

export const dialects: Readonly<Record<Engine, Dialect>> = { sqlite, postgresql };
