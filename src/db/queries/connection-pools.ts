/** Creates the two pools of a part of a database, for any engine: connections for reads, and the one for writes. */
import knex, { type Knex } from "knex";
import { setOperatorError, isDatabaseCorruption } from "../../base/errors/database-error-kind.js";
import type { DatabaseError, DatabasePart, Queries } from "./database.js";
import { createLivenessMonitor, type LivenessMonitor } from "./liveness.js";
import {
  type ConnectionAdapter,
  createQueries,
  createUses,
  type EngineAdapter,
  monitored,
  runTransaction,
} from "./queries.js";

export interface ConnectionsDeps {
  readonly adapter: EngineAdapter;
  /** Liveness monitor; left out if all queries run over these pools. */
  readonly liveness?: LivenessMonitor;
  /** Settings of knex, without the size of the pool. */
  readonly settings: Knex.Config;
  /** Number of connections for reads. */
  readonly readers: number;
  /** Query that fails if the database cannot be used. */
  readonly question: string;
  /** Returns the error for the operator in that case. */
  readonly explain: (error: unknown) => DatabaseError;
  /** Prepares queries for reads. Without it, prepared queries run like any other. */
  readonly prepare?: Queries["prepare"];
  /** Runs the engine's own check. Without it, no corruption is found. */
  readonly inspect?: DatabasePart["inspect"];
}

/**
 * Time limit in milliseconds for a query to get a connection. It is longer than SQLite waits for a lock (1.5 s), so
 * that a lock is reported as such.
 */
export const acquireWithinMs = 2_000;
/** Time limit in milliseconds to open a database. It is long, because a slow disk should not prevent a start. */
const openWithinMs = 30_000;

const findNothing: DatabasePart["inspect"] = () => Promise.resolve([]);
const ignore = (): void => undefined;
/** Silences knex: every message that it would print is thrown as well. */
const silent = { debug: ignore, warn: ignore, error: ignore, deprecate: ignore };

/** Hook of a pool that prepares a new connection before its first use. */
type AfterCreate = (connection: never, done: (error: Error | null, connection: never) => void) => void;
const noSetup: AfterCreate = (connection, done) => done(null, connection);

/** Connections to a part of a database. */
export interface ConnectionPools extends DatabasePart {
  close(): Promise<void>;
}

/**
 * Opens the pools.
 *
 * @throws DatabaseError if the database cannot be used.
 */
export async function openConnectionPools(deps: ConnectionsDeps): Promise<ConnectionPools> {
  const {
    adapter: engine,
    liveness = createLivenessMonitor(),
    settings,
    readers,
    question,
    explain,
    prepare,
    inspect = findNothing,
  } = deps;
  const { afterCreate = noSetup } = (settings.pool ?? {}) as { readonly afterCreate?: AfterCreate };
  const open = (connections: number, onCreated: (connection: never) => void): Knex =>
    knex({
      ...settings,
      log: silent,
      acquireConnectionTimeout: acquireWithinMs,
      pool: {
        ...settings.pool,
        min: 0,
        max: connections,
        afterCreate: (connection: never, done: Parameters<AfterCreate>[1]) => {
          onCreated(connection);
          afterCreate(connection, done);
        },
      },
    });
  const adapter: EngineAdapter = {
    ...engine,
    onDatabaseError(error) {
      engine.onDatabaseError?.(error);
      if (!isDatabaseCorruption(error)) {
        setOperatorError(error as object, () => explain(error));
      }
    },
  };
  let writing: never;
  const [reader, writer] = [open(readers, ignore), open(1, (created) => (writing = created))];
  const close = async (): Promise<void> => {
    await reader.destroy();
    await writer.destroy();
  };
  try {
    // Connect both pools now, so that a slow connection delays the start and not the first read.
    await connect(() => monitored(engine, () => writer.raw(question)));
    await connect(() => monitored(engine, () => reader.raw(question)));
  } catch (error) {
    await close();
    throw explain(error);
  }
  // If every reader waits and no query completes, the wait is for the database, not for this process.
  const ofPool = (respondsWithinMs: number): ConnectionAdapter => {
    const uses = createUses();
    const isBusy = (sinceMs: number): boolean => uses.anySince(sinceMs) && liveness.stalledMs() < respondsWithinMs;
    return { ...adapter, liveness, uses, isBusy, connection: () => writing };
  };
  const read = ofPool(acquireWithinMs);
  const written = ofPool(Infinity);
  return {
    read: createQueries(reader, read, prepare),
    write: createQueries(writer, written),
    transaction: (work) => runTransaction(writer, written, work),
    stalledMs: () => liveness.stalledMs(),
    inspect,
    close,
  };
}

/**
 * Sends a query until the pool has a connection. A timeout leaves the connection attempt in progress to the next try.
 */
async function connect(send: () => Promise<unknown>): Promise<void> {
  const startedMs = performance.now();
  for (;;) {
    try {
      await send();
      return;
    } catch (error) {
      if (!(error instanceof knex.KnexTimeoutError)) {
        throw error;
      }
      if (performance.now() - startedMs > openWithinMs) {
        throw new Error(`no connection within ${openWithinMs / 1000} s`, { cause: error });
      }
    }
  }
}
