/**
 * Runs queries of the query builder. This is the only place where queries reach the database and their errors are
 * classified.
 */
import type { Knex } from "knex";
import type { EventEmitter } from "node:events";
import { type DatabaseErrorKind, isDatabaseError, markDatabaseError } from "../../base/errors/database-error-kind.js";
import type {
  DatabasePart,
  DatabaseTransaction,
  PreparedQuery,
  Queries,
  Query,
  QueryQueue,
  QueryValue,
} from "./database.js";
import type { Dialect } from "./dialects.js";
import { LivenessMonitor } from "./liveness.js";

/** Behavior that differs between engines. */
export interface EngineAdapter {
  readonly dialect: Dialect;
  /** Classifies an error code; undefined means that the query itself is wrong. */
  readonly errorKindOf: (code: string | undefined) => DatabaseErrorKind | undefined;
  /**
   * Sends a query directly to a connection. The query builder takes longer to pass on a query of a few rows than the
   * engine takes to run it.
   */
  readonly send: (connection: never, text: string, values: readonly QueryValue[]) => Promise<unknown[]>;
  /** Monitors a query or a transaction while it is in flight. */
  readonly monitor: <T>(work: () => Promise<T>) => Promise<T>;
  /** Runs a read outside of a transaction. May repeat it, or replace its error. */
  readonly runRead: <T>(read: () => Promise<T>) => Promise<T>;
  /** Runs a transaction, or another query that changes something. May replace its error. */
  readonly runWrite: <T>(write: () => Promise<T>) => Promise<T>;
  /** Returns the error to report in place of an error of the engine, or the same. */
  readonly examine: (error: unknown) => Promise<unknown>;
  /**
   * Called with a database error, after the query or transaction that met it has ended. `hasConnection` is false if it
   * got no connection, which says nothing about the connections in use.
   */
  readonly onDatabaseError: (error: unknown, hasConnection: boolean) => void;
}

/** Connections that queries run over. */
export interface ConnectionAdapter extends EngineAdapter {
  /**
   * Returns true if a query that has waited for a connection since `sinceMs` waits for other queries of this process.
   */
  readonly isBusy: (sinceMs: number) => boolean;
  readonly liveness: LivenessMonitor;
  readonly usage: ConnectionUsage;
  /** Returns the connection of the transaction in progress. The pool for writes has only one. */
  readonly connection: () => never;
}

/** Tracker of the queries and transactions that use the connections of a pool. */
export class ConnectionUsage {
  #count = 0;
  #endedMs = -Infinity;

  start(): void {
    this.#count++;
  }

  end(): void {
    this.#count--;
    this.#endedMs = performance.now();
  }

  /** Returns true if any connection was in use at or after this time of the monotonic clock. */
  isUsedSince(ms: number): boolean {
    return this.#count > 0 || this.#endedMs >= ms;
  }
}

/**
 * Creates queries over the connections of a pool.
 *
 * @param prepare prepares queries in the engine; without it, prepared queries run like any other.
 */
export function createQueries(knex: Knex, adapter: ConnectionAdapter, prepare?: Queries["prepare"]): Queries {
  // An error inside a transaction is reported when the transaction has ended.
  const execute = (query: Query, run: EngineAdapter["runRead"]): Promise<unknown> =>
    knex.isTransaction === true
      ? executeQuery(query, adapter)
      : reportErrors(adapter, () => run(() => executeQuery(query, adapter)));
  const write = (query: Query): Promise<unknown> => execute(query, adapter.runWrite);
  const read = (query: Query): Promise<unknown> => execute(query, adapter.runRead);
  const rows = async <Row>(query: Query): Promise<Row[]> => rowsOf<Row>(await read(query));
  return {
    dialect: adapter.dialect,
    run: (build) => write(build(knex)),
    async runAll(build) {
      for (const query of build(knex)) {
        await write(query);
      }
    },
    rows: (build) => rows(build(knex)),
    first: async <Row>(build: (sql: Knex) => Knex.QueryBuilder) => (await read(build(knex).first())) as Row | undefined,
    prepare:
      prepare ??
      (<Row>(text: string, _?: QueryQueue): PreparedQuery<Row> =>
        (...values) =>
          rows<Row>(knex.raw(text, [...values]))),
  };
}

/** Runs work with the engine's monitor, and reports a database error to the engine. */
async function reportErrors<T>(adapter: EngineAdapter, work: () => Promise<T>): Promise<T> {
  try {
    return await adapter.monitor(work);
  } catch (error) {
    if (isDatabaseError(error)) {
      adapter.onDatabaseError(error, !waitErrors.has(error as object));
    }
    throw error;
  }
}

/** Wraps transactions so that all reads share one snapshot: on PostgreSQL, REPEATABLE READ and read-only. */
export function withSnapshotReads(transaction: DatabasePart["transaction"]) {
  return <T>(work: (db: Queries) => Promise<T>): Promise<T> =>
    transaction(async (db) => {
      const { startSnapshotReads } = db.dialect;
      if (startSnapshotReads !== undefined) {
        await db.run((sql) => sql.raw(startSnapshotReads));
      }
      return await work(db);
    });
}

/** Runs work in one transaction. Commits, or rolls back if the work throws. */
export async function runTransaction<T>(
  knex: Knex,
  adapter: ConnectionAdapter,
  work: (db: DatabaseTransaction) => Promise<T>,
): Promise<T> {
  return await reportErrors(adapter, () => adapter.runWrite(() => runClassified(knex, adapter, work)));
}

/** Runs a transaction, and classifies an error by the stage in which it occurred. */
async function runClassified<T>(
  knex: Knex,
  adapter: ConnectionAdapter,
  work: (db: DatabaseTransaction) => Promise<T>,
): Promise<T> {
  const progress: { stage: Stage; thrown?: unknown } = { stage: "waiting" };
  const sinceMs = performance.now();
  try {
    return await knex.transaction(async (transaction) => {
      progress.stage = "sent";
      adapter.usage.start();
      try {
        const liveness = new LivenessMonitor(adapter.liveness);
        const within = { ...adapter, liveness };
        return await work({
          ...createQueries(transaction, within, prepareWithin(transaction, within)),
          stalledMs: () => liveness.stalledMs(),
        });
      } catch (error) {
        progress.thrown = error;
        throw error;
      }
    });
  } catch (error) {
    // After an error the engine may have rolled back by itself, so that the ROLLBACK fails too. Report the first error.
    if (error === progress.thrown || isDatabaseError(progress.thrown)) {
      throw progress.thrown;
    }
    // Errors of the work are handled above. This error comes from BEGIN or COMMIT.
    classify(error as Error, progress.stage, sinceMs, adapter);
    throw error;
  } finally {
    // Release after COMMIT, which may take longer than the work.
    if (progress.stage !== "waiting") {
      adapter.usage.end();
    }
  }
}

/**
 * Prepares queries for the connection of a transaction. They run one after the other, because some engines reject
 * concurrency.
 */
function prepareWithin(transaction: Knex.Transaction, adapter: ConnectionAdapter): Queries["prepare"] {
  let last: Promise<unknown> = Promise.resolve();
  const send = async (text: string, values: readonly QueryValue[]): Promise<unknown[]> => {
    if (transaction.isCompleted()) {
      throw new Error("The transaction of this query has ended.");
    }
    return await adapter.send(adapter.connection(), text, values);
  };
  return <Row>(text: string): PreparedQuery<Row> =>
    async (...values) => {
      const response = last.then(() => send(text, values));
      last = response.catch(() => undefined);
      try {
        return (await adapter.liveness.track(response, isResponse(adapter))) as Row[];
      } catch (error) {
        classify(error as Error, "sent", 0, adapter);
        throw error;
      }
    };
}

/** Returns a function that returns true if the error of a query that reached the engine counts as a response. */
function isResponse({ errorKindOf }: EngineAdapter): (error: unknown) => boolean {
  return (error) => errorKindOf(codeOf(error)) !== "unavailable";
}

/** Stage of a query: waiting for a connection, being built, or sent to the engine. */
type Stage = "waiting" | "building" | "sent";

async function executeQuery(query: Query, adapter: ConnectionAdapter): Promise<unknown> {
  let stage: Stage = "waiting";
  const sinceMs = performance.now();
  const events = query as unknown as EventEmitter;
  events.once("start", () => {
    stage = "building";
    adapter.usage.start();
  });
  events.once("query", () => (stage = "sent"));
  try {
    return await adapter.liveness.track(
      Promise.resolve(query),
      (error) => stage === "sent" && isResponse(adapter)(error),
    );
  } catch (error) {
    classify(error as Error, stage, sinceMs, adapter);
    throw error;
  } finally {
    if ((stage as Stage) !== "waiting") {
      adapter.usage.end();
    }
  }
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}

/** Errors of queries and transactions that got no connection. */
const waitErrors = new WeakSet();

/**
 * Marks an error as a database error if it is one, and removes the values of the query from it.
 *
 * @param sinceMs start of the wait on the monotonic clock; used only in the stage `waiting`.
 */
function classify(
  error: NodeJS.ErrnoException,
  stage: Stage,
  sinceMs: number,
  { errorKindOf, isBusy }: ConnectionAdapter,
): void {
  const kindOfCode = errorKindOf(error.code);
  const kindWhileWaiting = kindOfCode === "damaged" ? kindOfCode : isBusy(sinceMs) ? "busy" : "unavailable";
  // An error while the query is built comes from the driver, not from the database.
  const kind = stage === "waiting" ? kindWhileWaiting : stage === "sent" ? kindOfCode : undefined;
  if (kind !== undefined) {
    markDatabaseError(error, kind);
  }
  if (stage === "waiting") {
    waitErrors.add(error);
  }
  withoutQuery(error);
}

/**
 * Removes the query from an error. knex puts the query with its values into the message, and PostgreSQL puts the row
 * into `detail`; stored documents must not reach the log.
 */
function withoutQuery(error: Error & { sql?: unknown; bindings?: unknown; detail?: unknown; where?: unknown }): void {
  const { message, stack = "" } = error;
  error.message = message.slice(message.lastIndexOf(" - ") + 1).replace(/^- /, "");
  error.stack = stack.replace(message, () => error.message);
  delete error.sql;
  delete error.bindings;
  delete error.detail;
  delete error.where;
}

/** Returns the rows of a query. Some engines wrap the rows of a raw query in an object. */
function rowsOf<Row>(result: unknown): Row[] {
  return Array.isArray(result) ? (result as Row[]) : (result as { rows: Row[] }).rows;
}
