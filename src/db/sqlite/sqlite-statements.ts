/** Compiles each query of a SQLite connection once, instead of on each call of the query builder. */
import { LRUCache } from "lru-cache";
import type { Database as SqliteConnection, Statement } from "sqlite3";

type Callback = (this: unknown, error: Error | null, rows?: unknown[]) => void;
type QueryMethod = (text: string, values: readonly unknown[], callback: Callback) => unknown;

/** Methods of a connection that are replaced, in the only forms that the query builder uses. */
interface QueryMethods {
  all: QueryMethod;
  run: QueryMethod;
  close(callback: (error: Error | null) => void): void;
}

/** Limit on compiled queries of a connection. Lists of each length need a query of their own. */
const maxStatements = 256;

/** Matches queries that are worth caching. Statements that start or end a transaction are not. */
const isRepeated = /^(select|insert|update|delete|with)\b/i;

/** Caches the compiled queries of a connection until it is closed. */
export function cacheStatements(connection: SqliteConnection): void {
  const methods = connection as unknown as QueryMethods;
  const statements = new LRUCache<string, Promise<Statement>>({
    max: maxStatements,
    // The driver finalizes a statement only after its queued calls.
    dispose: (statement) => void statement.then((compiled) => compiled.finalize()).catch(() => undefined),
  });

  function compile(text: string): Promise<Statement> {
    const cached = statements.get(text);
    if (cached !== undefined) {
      return cached;
    }
    const prepared = new Promise<Statement>((resolve, reject) => {
      const statement: Statement = connection.prepare(text, (error: Error | null) =>
        error === null ? resolve(statement) : reject(error),
      );
    });
    statements.set(text, prepared);
    // The next call compiles the query again.
    prepared.catch(() => statements.delete(text));
    return prepared;
  }

  for (const method of ["all", "run"] as const) {
    const original = methods[method].bind(connection);
    methods[method] = (text, values, callback) => {
      if (!isRepeated.test(text)) {
        return original(text, values, callback);
      }
      return void compile(text)
        .then((statement) => {
          statement[method](values, function (this: unknown, error: Error | null, rows?: unknown[]) {
            if (error === null) {
              callback.call(this, error, rows);
            } else {
              // A statement that met a lock may still be active. Until it is reset, it reads its old snapshot of the
              // database.
              statement.reset(() => callback.call(this, error));
            }
          });
        })
        .catch((error: unknown) => callback(error as Error));
    };
  }

  const close = methods.close.bind(connection);
  // SQLite cannot close a connection that has compiled queries.
  methods.close = (callback) =>
    void Promise.allSettled(statements.values())
      .then(() => statements.clear())
      .then(() => close(callback));
}
