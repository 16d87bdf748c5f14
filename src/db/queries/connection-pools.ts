/** The two pools of a part of a database, whatever the engine: connections for reads, and the one for writes. */
import knex, { type Knex } from "knex";
import type { DatabaseError, DatabasePart, Queries } from "./database.js";
import { createLivenessMonitor, type LivenessMonitor } from "./liveness.js";
import { type ConnectionWords, createQueries, createUses, type EngineWords, runTransaction } from "./queries.js";

/** What an engine's pools are made of. */
export interface ConnectionsDeps {
  readonly words: EngineWords;
  /** Left out where all queries run over these pools. */
  readonly pulse?: LivenessMonitor;
  /** Settings of knex, without the size of the pool. */
  readonly settings: Knex.Config;
  /** Connections for reads. */
  readonly readers: number;
  /** A query that fails when the database cannot be used. */
  readonly question: string;
  /** What to tell the operator then. */
  readonly explain: (error: unknown) => DatabaseError;
  /** How the engine prepares queries for reads; where it does not, they run like any other. */
  readonly prepare?: Queries["prepare"];
  /** How the engine looks at itself; where it does not, nothing is found. */
  readonly inspect?: DatabasePart["inspect"];
}

/** How long a query waits for a free connection: longer than SQLite waits for a lock, so that a lock is told of. */
export const acquireWithinMs = 2_000;
/** How long a database may take to be opened: a disk that is slow to make a file is no reason not to start. */
const openWithinMs = 30_000;

const findNothing: DatabasePart["inspect"] = () => Promise.resolve([]);
const ignore = (): void => undefined;
/** Everything that knex would print is thrown as well. */
const silent = { debug: ignore, warn: ignore, error: ignore, deprecate: ignore };

/** What a pool does with a connection that was made, before anybody gets it. */
type AfterCreate = (connection: never, done: (error: Error | null, connection: never) => void) => void;
const justMade: AfterCreate = (connection, done) => done(null, connection);

/** Connections to a part of a database. */
export interface ConnectionPools extends DatabasePart {
  close(): Promise<void>;
}

/**
 * Opens the pools.
 *
 * @throws DatabaseError
 */
export async function openConnectionPools(deps: ConnectionsDeps): Promise<ConnectionPools> {
  const {
    words,
    pulse = createLivenessMonitor(),
    settings,
    readers,
    question,
    explain,
    prepare,
    inspect = findNothing,
  } = deps;
  const { afterCreate = justMade } = (settings.pool ?? {}) as { readonly afterCreate?: AfterCreate };
  const open = (connections: number, onMade: (connection: never) => void): Knex =>
    knex({
      ...settings,
      log: silent,
      acquireConnectionTimeout: acquireWithinMs,
      pool: {
        ...settings.pool,
        min: 0,
        max: connections,
        afterCreate: (connection: never, done: Parameters<AfterCreate>[1]) => {
          onMade(connection);
          afterCreate(connection, done);
        },
      },
    });
  let writing: never;
  const [reader, writer] = [open(readers, ignore), open(1, (made) => (writing = made))];
  const close = async (): Promise<void> => {
    await reader.destroy();
    await writer.destroy();
  };
  try {
    // Both: a machine that is slow to make a connection is so while a start waits for it, and not in its first read.
    await askFirst(writer, question);
    await askFirst(reader, question);
  } catch (error) {
    await close();
    throw explain(error);
  }
  // Where all those who read wait, and nobody is answered, it is the database that is waited for.
  const ofPool = (answersWithinMs: number): ConnectionWords => {
    const uses = createUses();
    const isBusy = (sinceMs: number): boolean => uses.anySince(sinceMs) && pulse.stalledMs() < answersWithinMs;
    return { ...words, pulse, uses, isBusy, connection: () => writing };
  };
  const read = ofPool(acquireWithinMs);
  const written = ofPool(Infinity);
  return {
    read: createQueries(reader, read, prepare),
    write: createQueries(writer, written),
    transaction: (work) => runTransaction(writer, written, work),
    stalledMs: () => pulse.stalledMs(),
    inspect,
    close,
  };
}

/** Asks until the pool has a connection: a wait that ends leaves the one that is being made to the next. */
async function askFirst(pool: Knex, question: string): Promise<void> {
  const began = performance.now();
  for (;;) {
    try {
      await pool.raw(question);
      return;
    } catch (error) {
      if (!(error instanceof knex.KnexTimeoutError)) {
        throw error;
      }
      if (performance.now() - began > openWithinMs) {
        throw new Error(`no connection within ${openWithinMs / 1000} s`, { cause: error });
      }
    }
  }
}
