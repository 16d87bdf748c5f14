/**
 * The database, as the stores see it: the files of a feature that hold its queries (`*-store.ts`). Everything else speaks
 * of blocks, programs, leaves and peers, and knows neither an engine nor a query builder.
 */
import type { Knex } from "knex";
import { type DatabaseErrorKind, markDatabaseError } from "../../base/errors/database-error-kind.js";
import type { Dialect } from "./dialects.js";

/** Builds a query: `sql("blocks").where(…)`, or `sql.raw(…)`. */
export type QueryBuilder = Knex;

/** A query that was built and did not run yet. */
export type Query = Knex.QueryBuilder | Knex.SchemaBuilder | Knex.Raw;

/**
 * Runs queries: each by itself, or all of them inside one transaction. A query that fails because the database is away,
 * locked or full throws an error that is marked so (isDatabaseTrouble); no error tells the values of its query.
 */
export interface Queries {
  /** The words that are not the same with every engine. */
  readonly dialect: Dialect;
  /** The rows of a query. */
  rows<Row>(build: (sql: QueryBuilder) => Query): Promise<Row[]>;
  /** The first row of a query; undefined when it has none. */
  first<Row>(build: (sql: QueryBuilder) => Knex.QueryBuilder): Promise<Row | undefined>;
  /** Runs a query, and gives what its builder makes of it: of an update or a delete, the number of rows that it met. */
  run(build: (sql: QueryBuilder) => Query): Promise<unknown>;
  /** Runs queries one after the other. */
  runAll(build: (sql: QueryBuilder) => readonly Query[]): Promise<void>;
  /**
   * A query that is asked often: compiled once where the engine can, and handed over without the query builder. In the lane
   * for points when left out.
   */
  readonly prepare: <Row>(text: string, lane?: Lane) => PreparedQuery<Row>;
}

/** Where queries wait for each other: those of a few rows by their keys, and those that may look at many rows. */
export type Lane = "point" | "list";

/** A value for a question mark. */
export type QueryValue = string | number;

/** Runs a query with values for its question marks. */
export type PreparedQuery<Row> = (...values: readonly QueryValue[]) => Promise<Row[]>;

/** Queries inside one transaction of the database. */
export interface DatabaseTransaction extends Queries {
  /** How long its query has waited for an answer; 0 while none is under way. */
  stalledMs(): number;
}

/** A part of a database, with a writer of its own: who writes to one part never waits for who writes to another. */
export interface DatabasePart {
  /** For reads: several connections, none of which waits for the writer. */
  readonly read: Queries;
  /** For writes: one connection, so that writers queue here and not inside the engine. */
  readonly write: Queries;
  /** Runs work in one transaction of the writer: all of its changes are stored, or none when it throws. */
  readonly transaction: <T>(work: (db: DatabaseTransaction) => Promise<T>) => Promise<T>;
  /**
   * How long queries have waited without an answer to any of them, 0 while none waits: a database that is busy answers
   * some, and one that hangs none.
   */
  readonly stalledMs: () => number;
  /**
   * What the engine itself finds damaged when it looks at all of its pages and indexes, in its own words; nothing where it
   * has no such look. It takes a while, and keeps nobody waiting.
   */
  readonly inspect: (how?: "whole" | "quick") => Promise<readonly string[]>;
}

/** The files of an embedded engine. */
export interface DatabaseFiles {
  /**
   * Keeps all others from writing until the database is closed, or the process is gone, however it ends. False where
   * somebody else does so.
   */
  lock(): Promise<boolean>;
  /** The path of a file that is not there any more, or is another one than when it was opened; undefined where all are. */
  lost(): Promise<string | undefined>;
}

/** An open database. */
export interface Database extends DatabasePart {
  /** Undefined for a server, which holds both parts in one database and lets several processes write to it. */
  readonly files: DatabaseFiles | undefined;
  /**
   * What waits for a block: stored apart, so that a transaction is taken while a block is applied. No transaction spans
   * both parts.
   */
  readonly mempool: DatabasePart;
  /** Why what is committed may be lost all the same, by the settings of the server: sentences for the operator. */
  whatMayBeLost(): Promise<readonly string[]>;
  /** Closes all connections. */
  close(): Promise<void>;
}

/** A database that is only read, and that another process may use meanwhile. */
export interface ReadableDatabase extends Pick<DatabasePart, "read" | "inspect"> {
  /** Runs reads that are all of one moment, that of the first of them; one such work at a time. */
  readonly ofOneMoment: <T>(work: (db: Queries) => Promise<T>) => Promise<T>;
  /** Why what is committed may be lost all the same; one sentence for each cause. */
  whatMayBeLost(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** The database cannot be used; the message is one sentence for the operator. */
export class DatabaseError extends Error {
  override readonly name = "DatabaseError";

  /** @param code what the engine calls it, where it has a word for it. */
  constructor(
    message: string,
    readonly code?: string,
  ) {
    super(message);
  }
}

/** An error of a database that may be over by itself, so that whoever starts may wait for its end. */
export function passing(message: string, trouble: DatabaseErrorKind, code?: string): DatabaseError {
  const error = new DatabaseError(message, code);
  markDatabaseError(error, trouble);
  return error;
}
