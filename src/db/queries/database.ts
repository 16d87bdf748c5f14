/**
 * Database interface for the stores: the files of a feature that hold its queries (`*-store.ts`). Other code deals with
 * blocks, programs, leaves and peers, and depends on no engine and no query builder.
 */
import type { Knex } from "knex";
import { type DatabaseErrorKind, markDatabaseError } from "../../base/errors/database-error-kind.js";
import type { Dialect } from "./dialects.js";

/** Query builder: `sql("blocks").where(…)`, or `sql.raw(…)`. */
export type QueryBuilder = Knex;

/** Query that is built and has not run yet. */
export type Query = Knex.QueryBuilder | Knex.SchemaBuilder | Knex.Raw;

/**
 * Runs queries, separately or inside one transaction. If the database is unavailable, locked or full, the error is
 * marked, see isDatabaseError. No error contains values of its query.
 */
export interface Queries {
  /** SQL that differs between engines. */
  readonly dialect: Dialect;
  /** Returns the rows of a query. */
  rows<Row>(build: (sql: QueryBuilder) => Query): Promise<Row[]>;
  /** Returns the first row of a query; undefined if it has none. */
  first<Row>(build: (sql: QueryBuilder) => Knex.QueryBuilder): Promise<Row | undefined>;
  /**
   * Runs a query and returns the result of the query builder. For an update or a delete, it is the number of affected
   * rows.
   */
  run(build: (sql: QueryBuilder) => Query): Promise<unknown>;
  runAll(build: (sql: QueryBuilder) => readonly Query[]): Promise<void>;
  /**
   * Prepares a query for frequent use. The engine compiles it once, if it can, without the query builder.
   * Default queue: `point`.
   */
  readonly prepare: <Row>(text: string, queue?: QueryQueue) => PreparedQuery<Row>;
}

/** Queue of a query: `point` for a few rows by key, `list` for queries that may scan many rows. */
export type QueryQueue = "point" | "list";

export type QueryValue = string | number;

/** Runs a query with values for its placeholders. */
export type PreparedQuery<Row> = (...values: readonly QueryValue[]) => Promise<Row[]>;

/** Queries inside one database transaction. */
export interface DatabaseTransaction extends Queries {
  /** Returns how long the current query has waited for a response, in milliseconds; 0 if none is in flight. */
  stalledMs(): number;
}

/** Part of a database with its own writer. Writers of different parts never wait for each other. */
export interface DatabasePart {
  /** Queries for reads: several connections, which never wait for the writer. */
  readonly read: Queries;
  /** Queries for writes: one connection, so that writes queue here and not inside the engine. */
  readonly write: Queries;
  /** Runs work in one transaction of the writer. Commits all changes, or rolls back if the work throws. */
  readonly transaction: <T>(work: (db: DatabaseTransaction) => Promise<T>) => Promise<T>;
  /**
   * Returns how long queries have waited while none completed, in milliseconds; 0 if none waits. A busy database still
   * completes some queries, a hung one completes none.
   */
  readonly stalledMs: () => number;
  /**
   * Runs the engine's own check of all pages and indexes, and returns its messages about corruption. Returns an empty
   * list if the engine has no such check. The check is slow, but does not block queries.
   */
  readonly inspect: (depth?: "full" | "quick") => Promise<readonly string[]>;
  /**
   * Registers a listener that is called with the system's error code when the disk of the database becomes unreadable,
   * and with undefined when it can be read again. A server reports its disk only by its errors.
   */
  readonly onDiskChange: (listener: (code: string | undefined) => void) => void;
}

/** Files of an embedded engine. */
export interface DatabaseFiles {
  /**
   * Prevents writes by other processes until the database is closed or this process ends in any way. Returns false if
   * another process holds the lock.
   */
  lock(): Promise<boolean>;
  /** Returns the path of a file that is missing or was replaced since it was opened; undefined if there is none. */
  findLostFile(): Promise<string | undefined>;
}

/** Use of the connections of a pool. */
export type PoolUse = "read" | "write";

/** Rules for reads from a standby server while no server accepts writes. */
export interface StandbyReads {
  /**
   * Returns true if a server has all that this process has shown to clients.
   *
   * @param rows returns the rows of a query on that server.
   */
  readonly isCurrent: (rows: (text: string) => Promise<readonly object[]>) => Promise<boolean>;
  /** Called when reads have moved from the primary to a standby or back, before the first of them. */
  readonly onMoved: () => void;
}

export interface Database extends DatabasePart {
  /** Undefined for a server, which holds both parts in one database and permits several writing processes. */
  readonly files: DatabaseFiles | undefined;
  /**
   * Pending and rejected transactions. They are stored apart from the chain, so that the node can accept one while it
   * applies a block. No transaction spans both parts.
   */
  readonly mempool: DatabasePart;
  /** Returns a message for the operator for each setting of the server that may lose committed data. */
  durabilityRisks(): Promise<readonly string[]>;
  /** Lets standby servers serve reads while no server accepts writes. Without a call, such reads fail. */
  allowStandbyReads(rules: StandbyReads): void;
  close(): Promise<void>;
}

/** Database that is only read, while another process may write to it. */
export interface ReadableDatabase extends Pick<DatabasePart, "read" | "inspect"> {
  /** Runs reads in one snapshot, which starts at the first read. Only one call can run at a time. */
  readonly withSnapshot: <T>(work: (db: Queries) => Promise<T>) => Promise<T>;
  /** Returns a message for the operator for each setting of the server that may lose committed data. */
  durabilityRisks(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** Error for a database that cannot be used. The message is one sentence for the operator. */
export class DatabaseError extends Error {
  override readonly name = "DatabaseError";

  /**
   * @param code error code of the engine, if there is one.
   * @param publicReason reason for `/health`, which names no host; undefined if the code is all there is to say.
   */
  constructor(
    message: string,
    readonly code?: string,
    readonly publicReason?: string,
  ) {
    super(message);
  }
}

/** Creates an error that may be temporary, so that the start of a node may wait and retry. */
export function temporaryError(message: string, kind: DatabaseErrorKind, ...more: readonly string[]): DatabaseError {
  const error = new DatabaseError(message, ...more);
  markDatabaseError(error, kind);
  return error;
}
