/** Creates the two pools of a part of a database, for any engine: connections for reads, and the one for writes. */
import knex, { type Knex } from "knex";
import { setOperatorError, isDatabaseCorruption } from "../../base/errors/database-error-kind.js";
import type { DatabaseError, DatabasePart, PoolUse, Queries } from "./database.js";
import type { LivenessMonitor } from "./liveness.js";
import {
  type ConnectionAdapter,
  ConnectionUsage,
  createQueries,
  type EngineAdapter,
  runTransaction,
} from "./queries.js";

/** Dependencies of one pool. */
export interface PoolDeps {
  readonly adapter: EngineAdapter;
  /** Settings of knex, without the size of the pool. */
  readonly settings: Knex.Config;
}

export interface ConnectionsDeps {
  readonly poolOf: (use: PoolUse) => PoolDeps;
  readonly liveness: LivenessMonitor;
  readonly readers: number;
  /** Query that fails if the database cannot be used. */
  readonly probeQuery: string;
  /** Returns the error for the operator if the database cannot be used. */
  readonly explain: (error: unknown) => DatabaseError;
  /** Prepares queries for reads. Without it, prepared queries run like any other. */
  readonly prepare?: Queries["prepare"];
  readonly inspect: DatabasePart["inspect"];
  readonly onDiskChange: DatabasePart["onDiskChange"];
}

/**
 * Time limit in milliseconds for a query to get a connection. It is longer than SQLite waits for a lock (1.5 s), so
 * that a lock is reported as such.
 */
export const acquireTimeoutMs = 2_000;
/** Time limit in milliseconds to open a database. It is long, because a slow disk should not prevent a start. */
const openTimeoutMs = 30_000;

const ignore = (): void => undefined;
/** Silences knex: every message that it would print is thrown as well. */
const silent = { debug: ignore, warn: ignore, error: ignore, deprecate: ignore };

/** Hook of a pool that prepares a new connection before its first use. */
type AfterCreate = (connection: never, done: (error: Error | null, connection: never) => void) => void;

/** Connections to a part of a database. */
export interface ConnectionPools extends DatabasePart {
  close(): Promise<void>;
}

/** @throws DatabaseError if the database cannot be used. */
export async function openConnectionPools(deps: ConnectionsDeps): Promise<ConnectionPools> {
  const { poolOf, liveness, readers, probeQuery, explain, prepare, inspect, onDiskChange } = deps;
  let writeConnection: never;
  const open = (use: PoolUse, connections: number) => {
    const { adapter: engine, settings } = poolOf(use);
    const { afterCreate } = (settings.pool ?? {}) as { readonly afterCreate?: AfterCreate };
    const pool = knex({
      ...settings,
      log: silent,
      acquireConnectionTimeout: acquireTimeoutMs,
      pool: {
        ...settings.pool,
        min: 0,
        max: connections,
        afterCreate: (connection: never, done: Parameters<AfterCreate>[1]) => {
          if (use === "write") {
            writeConnection = connection;
          }
          if (afterCreate === undefined) {
            done(null, connection);
          } else {
            afterCreate(connection, done);
          }
        },
      },
    });
    const adapter: EngineAdapter = {
      ...engine,
      onDatabaseError(error, hasConnection) {
        engine.onDatabaseError(error, hasConnection);
        if (!isDatabaseCorruption(error)) {
          setOperatorError(error as object, () => explain(error));
        }
      },
    };
    return { pool, adapter };
  };
  const [reader, writer] = [open("read", readers), open("write", 1)];
  const close = async (): Promise<void> => {
    await reader.pool.destroy();
    await writer.pool.destroy();
  };
  try {
    // Connect both pools now, so that a slow connection delays the start and not the first read.
    for (const { pool, adapter } of [writer, reader]) {
      await connect(() => adapter.monitor(async () => void (await pool.raw(probeQuery))));
    }
  } catch (error) {
    const examined = await writer.adapter.examine(error);
    await close();
    throw explain(examined);
  }
  // If every reader waits and no query completes, the wait is for the database, not for this process.
  const trackUsage = (adapter: EngineAdapter, maxStalledMs: number): ConnectionAdapter => {
    const usage = new ConnectionUsage();
    const isBusy = (sinceMs: number): boolean => usage.isUsedSince(sinceMs) && liveness.stalledMs() < maxStalledMs;
    return { ...adapter, liveness, usage, isBusy, connection: () => writeConnection };
  };
  const readAdapter = trackUsage(reader.adapter, acquireTimeoutMs);
  const writeAdapter = trackUsage(writer.adapter, Infinity);
  return {
    read: createQueries(reader.pool, readAdapter, prepare),
    write: createQueries(writer.pool, writeAdapter),
    transaction: (work) => runTransaction(writer.pool, writeAdapter, work),
    stalledMs: () => liveness.stalledMs(),
    inspect,
    onDiskChange,
    close,
  };
}

/**
 * Sends a query until the pool has a connection. An attempt to connect that outlasts the timeout of a query continues,
 * and the next query waits for it.
 */
async function connect(send: () => Promise<void>): Promise<void> {
  const startedMs = performance.now();
  for (;;) {
    try {
      await send();
      return;
    } catch (error) {
      if (!(error instanceof knex.KnexTimeoutError)) {
        throw error;
      }
      if (performance.now() - startedMs > openTimeoutMs) {
        throw new Error(`no connection within ${openTimeoutMs / 1000} s`, { cause: error });
      }
    }
  }
}
