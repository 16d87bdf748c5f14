/** Runs what the query builder builds: the one place where a query meets the database and its errors are looked at. */
import type { Knex } from "knex";
import type { EventEmitter } from "node:events";
import { markDatabaseBusy, markDatabaseDamage, markDatabaseTrouble } from "../base/database-trouble.js";
import type { DatabaseTransaction, Lane, PreparedQuery, Queries, Query } from "./database.js";
import type { Dialect } from "./dialects.js";

/** What is special about an engine. */
export interface EngineWords {
  readonly dialect: Dialect;
  /** Whether a query that fails with this code failed because the database is away, locked or full. */
  readonly isTrouble: (code: string | undefined) => boolean;
  /** Whether a query that fails with this code met something that the engine itself finds damaged. */
  readonly isDamage: (code: string | undefined) => boolean;
  /** Whether a query that waits for a connection waits for another one of this process; false where it is left out. */
  readonly isBusy?: () => boolean;
}

/**
 * Queries over connections.
 *
 * @param prepare how the engine prepares queries; where it does not, they run like any other.
 */
export function createQueries(knex: Knex, words: EngineWords, prepare?: Queries["prepare"]): Queries {
  const rows = async <Row>(query: Query): Promise<Row[]> => rowsOf<Row>(await settle(query, words));
  return {
    dialect: words.dialect,
    run: (build) => settle(build(knex), words),
    async runAll(build) {
      for (const query of build(knex)) {
        await settle(query, words);
      }
    },
    rows: (build) => rows(build(knex)),
    first: async <Row>(build: (sql: Knex) => Knex.QueryBuilder) =>
      (await settle(build(knex).first(), words)) as Row | undefined,
    prepare:
      prepare ??
      (<Row>(text: string, _?: Lane): PreparedQuery<Row> =>
        (...values) =>
          rows<Row>(knex.raw(text, [...values]))),
  };
}

/** Runs work in one transaction, which it commits, or rolls back when the work throws. */
export async function runTransaction<T>(
  knex: Knex,
  words: EngineWords,
  work: (db: DatabaseTransaction) => Promise<T>,
): Promise<T> {
  const progress: { stage: Stage; thrown?: unknown } = { stage: knex.isTransaction === true ? "sent" : "waiting" };
  try {
    return await knex.transaction(async (transaction) => {
      progress.stage = "sent";
      try {
        return await work({ ...createQueries(transaction, words), attempt: createAttempt(transaction, words) });
      } catch (error) {
        progress.thrown = error;
        throw error;
      }
    });
  } catch (error) {
    // What the work throws is its own; here it could not be begun, or not be ended.
    if (error !== progress.thrown) {
      explain(error as Error, progress.stage, words);
    }
    throw error;
  }
}

/** Queries of one attempt are known by their time alone, so there is no other one meanwhile. */
function createAttempt(transaction: Knex.Transaction, words: EngineWords): DatabaseTransaction["attempt"] {
  let isUnderWay = false;
  return async (work) => {
    if (isUnderWay) {
      throw new Error("Another attempt is under way in this transaction.");
    }
    isUnderWay = true;
    try {
      return await runTransaction(transaction, words, work);
    } finally {
      isUnderWay = false;
    }
  };
}

/** How far a query came: it waited for a connection, it was being built, or the engine had it. */
type Stage = "waiting" | "building" | "sent";

async function settle(query: Query, words: EngineWords): Promise<unknown> {
  let stage: Stage = "waiting";
  const events = query as unknown as EventEmitter;
  events.once("start", () => (stage = "building"));
  events.once("query", () => (stage = "sent"));
  try {
    return await query;
  } catch (error) {
    explain(error as Error, stage, words);
    throw error;
  }
}

/** Marks an error when it is trouble of the database, and takes the values of the query out of it. */
function explain(error: NodeJS.ErrnoException, stage: Stage, { isTrouble, isDamage, isBusy }: EngineWords): void {
  if (stage !== "building" && isDamage(error.code)) {
    markDatabaseDamage(error);
  } else if (stage === "waiting" && isBusy?.() === true) {
    markDatabaseBusy(error);
  } else if (stage === "waiting" || (stage === "sent" && isTrouble(error.code))) {
    markDatabaseTrouble(error);
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
