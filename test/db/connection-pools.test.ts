/** How the pools of a database are opened. */
import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { acquireWithinMs, openConnectionPools } from "../../src/db/queries/connection-pools.js";
import { DatabaseError } from "../../src/db/queries/database.js";
import { dialects } from "../../src/db/queries/dialects.js";

const adapter = {
  dialect: dialects.sqlite,
  errorKindOf: () => undefined,
  send: () => Promise.reject(new Error("unasked")),
};

function open(prepare: () => Promise<void>) {
  return openConnectionPools({
    adapter,
    settings: {
      client: "sqlite3",
      connection: { filename: ":memory:" },
      useNullAsDefault: true,
      pool: {
        afterCreate: (connection: object, done: (error: unknown, made: object) => void) => {
          prepare().then(
            () => done(null, connection),
            (error: unknown) => done(error, connection),
          );
        },
      },
    },
    readers: 1,
    question: "SELECT 1",
    explain: (error) => new DatabaseError((error as Error).message),
  });
}

test("a database that takes longer to open than a query waits for a connection is opened, with one connection for reads and one for writes", async (t) => {
  let made = 0;
  const connections = await open(async () => {
    made += 1;
    await sleep(acquireWithinMs + 500);
  });
  t.deepEqual(await connections.write.rows((sql) => sql.raw("SELECT 7 AS seven")), [{ seven: 7 }]);
  t.is(made, 2);
  await connections.close();
});

test("why a connection cannot be made is told", async (t) => {
  await t.throwsAsync(
    open(() => Promise.reject(new Error("a disk is full"))),
    { instanceOf: DatabaseError, message: "a disk is full" },
  );
});
