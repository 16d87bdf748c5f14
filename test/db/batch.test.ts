/** Batching of reads into queries. */
import test from "ava";
import { setImmediate as nextTick } from "node:timers/promises";
import { countAccept } from "../../src/base/async/turns.js";
import { yieldToEventLoop } from "../../src/base/async/yielding.js";
import { batch } from "../../src/db/rows/batch.js";
import { until } from "../helpers/nodes/until.js";

/** Creates a batched read of at most three keys for each query. A query waits until `end` completes or rejects it. */
function createQueries() {
  const queries: (readonly number[])[] = [];
  const ends: ((error?: Error) => void)[] = [];
  const findMany = (keys: readonly number[]): Promise<string[]> => {
    queries.push(keys);
    return new Promise((resolve, reject) => {
      ends.push((error) => (error === undefined ? resolve(keys.map((key) => `found ${key}`)) : reject(error)));
    });
  };
  return { queries, end: (error?: Error) => ends.shift()!(error), find: batch(findMany, 3) };
}

test("keys of one tick are sent as one query, and so are keys that arrive while a query is in flight", async (t) => {
  const { queries, end, find } = createQueries();
  const first = Promise.all([find(1), find(2)]);
  t.deepEqual(queries, []);
  await until(() => queries.length === 1);
  t.deepEqual(queries, [[1, 2]]);
  const second = Promise.all([find(3), find(4)]);
  await nextTick();
  t.is(queries.length, 1);
  end();
  t.deepEqual(await first, ["found 1", "found 2"]);
  const late = find(5);
  await until(() => queries.length === 2);
  t.deepEqual(queries.slice(1), [[3, 4, 5]]);
  end();
  t.deepEqual(await second, ["found 3", "found 4"]);
  t.is(await late, "found 5");
  const again = find(6);
  await until(() => queries.length === 3);
  end();
  t.is(await again, "found 6");
});

test("keys wait for the next tick, whatever long work waits for its turn", async (t) => {
  const find = batch<string, string>((keys) => Promise.resolve(keys));
  const longWork = Array.from({ length: 20 }, () => yieldToEventLoop());
  countAccept();
  let found: string | undefined;
  void find("a").then((value) => (found = value));
  await nextTick();
  await nextTick();
  t.is(found, "a");
  await Promise.all(longWork);
});

test("a query has at most the maximum number of keys, and its failure rejects only its own keys", async (t) => {
  const { queries, end, find } = createQueries();
  const found = Promise.allSettled([1, 2, 3, 4, 5, 6, 7].map((key) => find(key)));
  await until(() => queries.length === 1);
  end(new Error("no"));
  await until(() => queries.length === 2);
  end();
  await until(() => queries.length === 3);
  end();
  const outcomes = (await found).map(({ status }) => status === "fulfilled");
  t.deepEqual(queries, [[1, 2, 3], [4, 5, 6], [7]]);
  t.deepEqual(outcomes, [false, false, false, true, true, true, true]);
});
