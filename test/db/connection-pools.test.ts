/** Opening of the connection pools of a database. */
import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { acquireTimeoutMs, openConnectionPools } from "../../src/db/queries/connection-pools.js";
import { DatabaseError } from "../../src/db/queries/database.js";
import { dialects } from "../../src/db/queries/dialects.js";
import { LivenessMonitor } from "../../src/db/queries/liveness.js";

const adapter = {
  dialect: dialects.sqlite,
  errorKindOf: () => undefined,
  send: () => Promise.reject(new Error("unexpected query")),
  monitor: <T>(work: () => Promise<T>) => work(),
  onDatabaseError: () => undefined,
};

function open(prepare: () => Promise<void>) {
  return openConnectionPools({
    adapter,
    settings: {
      client: "sqlite3",
      connection: { filename: ":memory:" },
      useNullAsDefault: true,
      pool: {
        afterCreate: (connection: object, done: (error: unknown, created: object) => void) => {
          prepare().then(
            () => done(null, connection),
            (error: unknown) => done(error, connection),
          );
        },
      },
    },
    liveness: new LivenessMonitor(),
    inspect: () => Promise.resolve([]),
    readers: 1,
    probeQuery: "SELECT 1",
    explain: (error) => new DatabaseError((error as Error).message),
  });
}

test("opens one connection for reads and one for writes, even if connecting takes longer than a query waits", async (t) => {
  let opened = 0;
  const connections = await open(async () => {
    opened += 1;
    await sleep(acquireTimeoutMs + 500);
  });
  t.deepEqual(await connections.write.rows((sql) => sql.raw("SELECT 7 AS seven")), [{ seven: 7 }]);
  t.is(opened, 2);
  await connections.close();
});

test("rejects with the reason if a connection cannot be opened", async (t) => {
  await t.throwsAsync(
    open(() => Promise.reject(new Error("a disk is full"))),
    { instanceOf: DatabaseError, message: "a disk is full" },
  );
});
