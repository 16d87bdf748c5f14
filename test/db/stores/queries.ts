/** What stores build on: queries, transactions, and what is told of those that fail. */
import test from "ava";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";
import { isDatabaseBusy, isDatabaseError } from "../../../src/base/errors/database-error-kind.js";
import type { Queries } from "../../../src/db/queries/database.js";
import { acquireWithinMs } from "../../../src/db/queries/connection-pools.js";
import { RpcError } from "../../../src/rpc/errors.js";
import type { StoreSuite } from "./suite.js";

const row = (hash: string) => ({ hash, block_number: 1, transaction_hash: "a secret" });
const insert = (db: Queries, hash: string): Promise<unknown> => db.run((sql) => sql("nullifiers").insert(row(hash)));
const stored = async (db: Queries): Promise<string[]> =>
  (await db.rows<{ hash: string }>((sql) => sql("nullifiers").orderBy("hash").select("hash"))).map(({ hash }) => hash);

export const testQueries: StoreSuite = (engine, open) => {
  test(`${engine}: a transaction stores all of its changes, or none`, async (t) => {
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
    t.false(isDatabaseError(failure), "what the work throws is no trouble of the database");
    t.deepEqual(await stored(read), ["1", "2"]);
  });

  test(`${engine}: queries that a transaction is handed at once are answered in their order, and none after its end`, async (t) => {
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
    t.false(isDatabaseError(failed), "a query that is wrong is no trouble");
    t.notRegex(inspect(failed), /a secret/);
    t.is((await stored(read)).length, 20);
  });

  test(`${engine}: a prepared query has the same answer outside of a transaction and inside`, async (t) => {
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

  test(`${engine}: a query that is wrong is no trouble of the database, and tells no values`, async (t) => {
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

  test(`${engine}: who waits for a transaction that ends late, or for its COMMIT, waits for a database that is well`, async (t) => {
    const { transaction, write } = await open(t);
    let waits: Promise<unknown> | undefined;
    await transaction(async (db) => {
      await insert(db, "1");
      waits = insert(write, "2").then(
        () => "stored",
        (error: unknown) => error,
      );
      await sleep(500);
      // Nothing else runs meanwhile: after it the time to wait is over before the COMMIT is, unless the engine is fast.
      for (const untilMs = performance.now() + acquireWithinMs + 100; performance.now() < untilMs;);
    });
    const outcome = await waits;
    t.true(outcome === "stored" || isDatabaseBusy(outcome), inspect(outcome));
  });

  test(`${engine}: who waits too long for the one writer, or asks a closed database, hears of trouble`, async (t) => {
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
        t.true(isDatabaseBusy(error), "the database is well");
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
  });
};
