/** Queries and transactions, and the classification of their errors. */
import test from "ava";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";
import { isDatabaseBusy, isDatabaseError } from "../../../src/base/errors/database-error-kind.js";
import type { Queries } from "../../../src/db/queries/database.js";
import { acquireTimeoutMs } from "../../../src/db/queries/connection-pools.js";
import { RpcError } from "../../../src/rpc/errors.js";
import type { StoreSuite } from "./suite.js";

const row = (hash: string) => ({ hash, block_number: 1, transaction_hash: "a secret" });
const insert = (db: Queries, hash: string): Promise<unknown> => db.run((sql) => sql("nullifiers").insert(row(hash)));
const stored = async (db: Queries): Promise<string[]> =>
  (await db.rows<{ hash: string }>((sql) => sql("nullifiers").orderBy("hash").select("hash"))).map(({ hash }) => hash);

export const testQueries: StoreSuite = (engine, open) => {
  test.serial(`${engine}: a transaction stores all of its changes, or none`, async (t) => {
    const { read, transaction } = await open(t);
    t.is(
      await transaction(async (db) => {
        await insert(db, "1");
        await insert(db, "2");
        t.deepEqual(await stored(db), ["1", "2"]);
        t.deepEqual(await stored(read), []);
        return "done";
      }),
      "done",
    );
    t.deepEqual(await stored(read), ["1", "2"]);
    const failure = new RpcError("NOT_FOUND", "There is none.");
    const thrown = await t.throwsAsync(
      transaction(async (db) => {
        await insert(db, "3");
        throw failure;
      }),
    );
    t.is(thrown, failure);
    t.false(isDatabaseError(failure), "an error of the work is not a database error");
    t.deepEqual(await stored(read), ["1", "2"]);
  });

  test.serial(`${engine}: concurrent queries in a transaction run in order, and none runs after its end`, async (t) => {
    const { read, transaction } = await open(t);
    const text = "INSERT INTO nullifiers (hash, block_number, transaction_hash) VALUES (?, ?, ?)";
    const countText = "SELECT count(*) AS count FROM nullifiers";
    const late = await transaction(async (db) => {
      const put = db.prepare(text);
      const count = db.prepare<{ count: number }>(countText);
      const counts = await Promise.all(
        Array.from({ length: 20 }, async (_, i) => {
          const stored = put(String(i), i, "a secret");
          const counted = count();
          await stored;
          return (await counted)[0]!.count;
        }),
      );
      t.deepEqual(
        counts,
        Array.from({ length: 20 }, (_, i) => i + 1),
      );
      return put;
    });
    await t.throwsAsync(late("late", 1, "a secret"), { message: /has ended/ });
    t.is((await stored(read)).length, 20);

    const failed = await t.throwsAsync(transaction((db) => db.prepare(text)("1", 1, "a secret")));
    t.false(isDatabaseError(failed), "an invalid query is not a database error");
    t.notRegex(inspect(failed), /a secret/);
    t.is((await stored(read)).length, 20);
  });

  test.serial(`${engine}: a prepared query returns the same rows inside and outside of a transaction`, async (t) => {
    const { read, write, transaction } = await open(t);
    await insert(write, "1");
    const text = "SELECT hash, block_number FROM nullifiers WHERE hash = ? AND block_number < ?";
    const expected = [{ hash: "1", block_number: 1 }];
    t.deepEqual(await read.prepare(text)("1", 2), expected);
    t.deepEqual(await read.prepare(text, "list")("1", 2), expected);
    t.deepEqual(await write.prepare(text)("1", 2), expected);
    await transaction(async (db) => {
      await insert(db, "2");
      t.deepEqual(await db.prepare(text)("1", 2), expected);
      t.is((await db.prepare(text)("2", 2)).length, 1);
      t.is((await read.prepare(text)("2", 2)).length, 0);
    });
  });

  test.serial(`${engine}: the error of an invalid query is not a database error, and contains no values`, async (t) => {
    const { read, write, transaction } = await open(t);
    await insert(write, "1");
    for (const run of [
      () => insert(write, "1"),
      () => write.run((sql) => sql("nullifiers").insert({ ...row("2"), block_number: null })),
      () => transaction((db) => insert(db, "1")),
      () => read.rows((sql) => sql("nowhere").where({ hash: "a secret" })),
      () => read.first((sql) => sql("nowhere").where({ hash: "a secret" })),
      () => read.rows((sql) => sql("nullifiers").where({ hash: undefined })),
      () => read.prepare("SELECT * FROM nowhere WHERE hash = ?")("a secret"),
      () => transaction((db) => db.prepare("SELECT * FROM nowhere WHERE hash = ?")("a secret")),
    ]) {
      const error = await t.throwsAsync(run);
      t.false(isDatabaseError(error), error.message);
      t.false(inspect(error).includes("a secret"), inspect(error));
    }
    t.deepEqual(await stored(read), ["1"]);
  });

  test.serial(
    `${engine}: a write that waits for a late transaction or its COMMIT succeeds, or reports a busy database`,
    async (t) => {
      const { transaction, write } = await open(t);
      let waiting: Promise<unknown> | undefined;
      await transaction(async (db) => {
        await insert(db, "1");
        waiting = insert(write, "2").then(
          () => "stored",
          (error: unknown) => error,
        );
        await sleep(500);
        // Blocks the event loop until the time limit of the waiting write has passed, so that it may expire before COMMIT.
        for (const untilMs = performance.now() + acquireTimeoutMs + 100; performance.now() < untilMs;);
      });
      const outcome = await waiting;
      t.true(outcome === "stored" || isDatabaseBusy(outcome), inspect(outcome));
    },
  );

  test.serial(
    `${engine}: a write that waits too long for the writer is rejected as busy, and a query of a closed database as unavailable`,
    async (t) => {
      const database = await open(t);
      const { write, transaction } = database;
      await transaction(async (db) => {
        await insert(db, "1");
        for (const run of [
          () => insert(write, "2"),
          () => write.prepare("UPDATE nullifiers SET transaction_hash = ?")("a secret"),
          () => transaction((other) => insert(other, "2")),
        ]) {
          const error = await t.throwsAsync(run);
          t.true(isDatabaseError(error), error.message);
          t.true(isDatabaseBusy(error), "the database is reported as unavailable");
          t.false(inspect(error).includes("a secret"), inspect(error));
        }
      });
      t.deepEqual(await stored(database.read), ["1"]);
      await database.close();
      for (const run of [() => stored(database.read), () => insert(write, "2"), () => transaction(stored)]) {
        const error = await t.throwsAsync(run);
        t.true(isDatabaseError(error));
        t.false(isDatabaseBusy(error));
      }
    },
  );
};
