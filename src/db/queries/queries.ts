/** Runs what the query builder builds: the one place where a query meets the database and its errors are looked at. */
import type { Knex } from "knex";
import type { EventEmitter } from "node:events";
import { type DatabaseErrorKind, isDatabaseError, markDatabaseError } from "../../base/errors/database-error-kind.js";
import type { DatabaseTransaction, Lane, PreparedQuery, Queries, Query, QueryValue } from "./database.js";
import type { Dialect } from "./dialects.js";
import { type LivenessMonitor, livenessWithin } from "./liveness.js";

/** What is special about an engine. */
export interface EngineWords {
  readonly dialect: Dialect;
  /** What is the matter with the database when a query fails with this code; undefined when it is the query. */
  readonly troubleOf: (code: string | undefined) => DatabaseErrorKind | undefined;
  /**
   * Asks a connection itself, without the query builder, which takes longer to hand over a query of a few rows than the
   * engine to answer it.
   */
  readonly ask: (connection: never, text: string, values: readonly QueryValue[]) => Promise<unknown[]>;
  /** Watches over a query or a transaction while it is under way; where it is left out, nobody does. */
  readonly watch?: <T>(work: () => Promise<T>) => Promise<T>;
  /** Hears of trouble, once the query or the transaction that met it is over. */
  readonly onTrouble?: (error: unknown) => void;
}

/** The connections that queries run over. */
export interface ConnectionWords extends EngineWords {
  /** Whether a query that has waited for a connection since then waits for another one of this process. */
  readonly isBusy: (sinceMs: number) => boolean;
  readonly pulse: LivenessMonitor;
  readonly uses: Uses;
  /** The connection of a transaction that is under way: the pool for writes has one. */
  readonly connection: () => never;
}

/** The queries and transactions that have a connection of a pool, and those that had one. */
export interface Uses {
  begin(): void;
  end(): void;
  /** Whether any of them had a connection at a moment since then, by the monotonic clock. */
  anySince(ms: number): boolean;
}

/** Uses of a pool of which nobody has had a connection yet. */
export function createUses(): Uses {
  let [count, endedMs] = [0, -Infinity];
  return {
    begin: () => void count++,
    end() {
      count--;
      endedMs = performance.now();
    },
    anySince: (ms) => count > 0 || endedMs >= ms,
  };
}

/**
 * Queries over connections.
 *
 * @param prepare how the engine prepares queries; where it does not, they run like any other.
 */
export function createQueries(knex: Knex, words: ConnectionWords, prepare?: Queries["prepare"]): Queries {
  // Of trouble inside a transaction is told when that is over.
  const settle = (query: Query): Promise<unknown> =>
    knex.isTransaction === true ? settleQuery(query, words) : telling(words, () => settleQuery(query, words));
  const rows = async <Row>(query: Query): Promise<Row[]> => rowsOf<Row>(await settle(query));
  return {
    dialect: words.dialect,
    run: (build) => settle(build(knex)),
    async runAll(build) {
      for (const query of build(knex)) {
        await settle(query);
      }
    },
    rows: (build) => rows(build(knex)),
    first: async <Row>(build: (sql: Knex) => Knex.QueryBuilder) =>
      (await settle(build(knex).first())) as Row | undefined,
    prepare:
      prepare ??
      (<Row>(text: string, _?: Lane): PreparedQuery<Row> =>
        (...values) =>
          rows<Row>(knex.raw(text, [...values]))),
  };
}

/** Has the engine watch over something, and tells it of the trouble that it met. */
async function telling<T>({ watch, onTrouble }: EngineWords, work: () => Promise<T>): Promise<T> {
  try {
    return await (watch === undefined ? work() : watch(work));
  } catch (error) {
    if (isDatabaseError(error)) {
      onTrouble?.(error);
    }
    throw error;
  }
}

/** Runs work in one transaction, which it commits, or rolls back when the work throws. */
export async function runTransaction<T>(
  knex: Knex,
  words: ConnectionWords,
  work: (db: DatabaseTransaction) => Promise<T>,
): Promise<T> {
  return await telling(words, () => runStages(knex, words, work));
}

async function runStages<T>(
  knex: Knex,
  words: ConnectionWords,
  work: (db: DatabaseTransaction) => Promise<T>,
): Promise<T> {
  const progress: { stage: Stage; thrown?: unknown } = { stage: "waiting" };
  const sinceMs = performance.now();
  try {
    return await knex.transaction(async (transaction) => {
      progress.stage = "sent";
      words.uses.begin();
      try {
        const pulse = livenessWithin(words.pulse);
        return await work({
          ...createQueries(transaction, { ...words, pulse }, prepareWithin(transaction, { ...words, pulse })),
          stalledMs: () => pulse.stalledMs(),
        });
      } catch (error) {
        progress.thrown = error;
        throw error;
      }
    });
  } catch (error) {
    // An engine in trouble may have taken everything back by itself, and then has nothing left to take back.
    if (error === progress.thrown || isDatabaseError(progress.thrown)) {
      throw progress.thrown;
    }
    // What the work throws is its own; here it could not be begun, or not be ended.
    explain(error as Error, progress.stage, sinceMs, words);
    throw error;
  } finally {
    // After its COMMIT, which may take longer than all before it.
    if (progress.stage !== "waiting") {
      words.uses.end();
    }
  }
}

/** Queries that are handed to the connection of a transaction, one after the other: some engines take no second one. */
function prepareWithin(transaction: Knex.Transaction, words: ConnectionWords): Queries["prepare"] {
  let last: Promise<unknown> = Promise.resolve();
  const ask = async (text: string, values: readonly QueryValue[]): Promise<unknown[]> => {
    if (transaction.isCompleted()) {
      throw new Error("The transaction that a query belongs to is over.");
    }
    return await words.ask(words.connection(), text, values);
  };
  return <Row>(text: string): PreparedQuery<Row> =>
    async (...values) => {
      const asked = last.then(() => ask(text, values));
      last = asked.catch(() => undefined);
      try {
        return (await words.pulse.count(asked, isAnswer(words))) as Row[];
      } catch (error) {
        explain(error as Error, "sent", 0, words);
        throw error;
      }
    };
}

/** Whether an error of a query that the engine had is its answer. */
function isAnswer({ troubleOf }: EngineWords): (error: unknown) => boolean {
  return (error) => troubleOf(codeOf(error)) !== "unavailable";
}

/** How far a query came: it waited for a connection, it was being built, or the engine had it. */
type Stage = "waiting" | "building" | "sent";

async function settleQuery(query: Query, words: ConnectionWords): Promise<unknown> {
  let stage: Stage = "waiting";
  const sinceMs = performance.now();
  const events = query as unknown as EventEmitter;
  events.once("start", () => {
    stage = "building";
    words.uses.begin();
  });
  events.once("query", () => (stage = "sent"));
  try {
    return await words.pulse.count(Promise.resolve(query), (error) => stage === "sent" && isAnswer(words)(error));
  } catch (error) {
    explain(error as Error, stage, sinceMs, words);
    throw error;
  } finally {
    if ((stage as Stage) !== "waiting") {
      words.uses.end();
    }
  }
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}

/**
 * Marks an error when it is trouble of the database, and takes the values of the query out of it.
 *
 * @param sinceMs when the query began to wait, by the monotonic clock: of use while that is its stage.
 */
function explain(
  error: NodeJS.ErrnoException,
  stage: Stage,
  sinceMs: number,
  { troubleOf, isBusy }: ConnectionWords,
): void {
  const known = troubleOf(error.code);
  const whileWaiting = known === "damaged" ? known : isBusy(sinceMs) ? "busy" : "unavailable";
  // What is said while a query is built is the driver's word, and none of the database.
  const trouble = stage === "waiting" ? whileWaiting : stage === "sent" ? known : undefined;
  if (trouble !== undefined) {
    markDatabaseError(error, trouble);
  }
  withoutQuery(error);
}

/**
 * knex puts the query with its values before what the engine says, and PostgreSQL tells the row in `detail`: documents
 * must not get into the log that way.
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

/** The rows of a query, whatever the engine wraps those of a raw one in. */
function rowsOf<Row>(result: unknown): Row[] {
  return Array.isArray(result) ? (result as Row[]) : (result as { rows: Row[] }).rows;
}
