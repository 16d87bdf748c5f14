/** Has a connection of SQLite compile a query once, and not each time that the query builder asks it. */
import { LRUCache } from "lru-cache";
import type { Database as SqliteConnection, Statement } from "sqlite3";

type Callback = (this: unknown, error: Error | null, rows?: unknown[]) => void;
type Ask = (text: string, values: readonly unknown[], callback: Callback) => unknown;

/** What asks a connection, and ends it; the driver's own methods have more forms, which the query builder does not use. */
interface Asked {
  all: Ask;
  run: Ask;
  close(callback: (error: Error | null) => void): void;
}

/** Most compiled queries of a connection: lists of values of every length are queries of their own. */
const maxStatements = 256;

/** Queries that come again; what begins and ends a transaction is not worth keeping. */
const isRepeated = /^(select|insert|update|delete|with)\b/i;

/** Keeps the compiled queries of a connection until it is closed. */
export function keepStatements(connection: SqliteConnection): void {
  const asked = connection as unknown as Asked;
  const statements = new LRUCache<string, Promise<Statement>>({
    max: maxStatements,
    // Who has it still is answered before: it waits for its turn.
    dispose: (statement) => void statement.then((compiled) => compiled.finalize()).catch(() => undefined),
  });

  function compile(text: string): Promise<Statement> {
    const known = statements.get(text);
    if (known !== undefined) {
      return known;
    }
    const made = new Promise<Statement>((resolve, reject) => {
      const statement: Statement = connection.prepare(text, (error: Error | null) =>
        error === null ? resolve(statement) : reject(error),
      );
    });
    statements.set(text, made);
    // The next who asks tries it again.
    made.catch(() => statements.delete(text));
    return made;
  }

  for (const how of ["all", "run"] as const) {
    const ask = asked[how].bind(connection);
    asked[how] = (text, values, callback) => {
      if (!isRepeated.test(text)) {
        return ask(text, values, callback);
      }
      return void compile(text)
        .then((statement) => {
          statement[how](values, function (this: unknown, error: Error | null, rows?: unknown[]) {
            if (error === null) {
              callback.call(this, error, rows);
            } else {
              // One that met a lock has begun and may go on: until it is reset, it sees the database as it was then.
              statement.reset(() => callback.call(this, error));
            }
          });
        })
        .catch((error: unknown) => callback(error as Error));
    };
  }

  const close = asked.close.bind(connection);
  // It cannot be closed while there are compiled queries.
  asked.close = (callback) =>
    void Promise.allSettled(statements.values())
      .then(() => statements.clear())
      .then(() => close(callback));
}
