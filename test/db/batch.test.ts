/** Reads that are joined into queries. */
import test from "ava";
import { setImmediate as turn } from "node:timers/promises";
import { batch } from "../../src/db/rows/batch.js";
import { until } from "../helpers/nodes/until.js";

/** Queries that end when they are told to. */
function createQueries() {
  const asked: (readonly number[])[] = [];
  const ends: ((error?: Error) => void)[] = [];
  const findMany = (keys: readonly number[]): Promise<string[]> => {
    asked.push(keys);
    return new Promise((resolve, reject) => {
      ends.push((error) => (error === undefined ? resolve(keys.map((key) => `found ${key}`)) : reject(error)));
    });
  };
  return { asked, end: (error?: Error) => ends.shift()!(error), find: batch(findMany, 3) };
}

test("what is asked in one turn is one query, and so is what is asked while it is under way", async (t) => {
  const { asked, end, find } = createQueries();
  const first = Promise.all([find(1), find(2)]);
  t.deepEqual(asked, []);
  await until(() => asked.length === 1);
  t.deepEqual(asked, [[1, 2]]);
  const second = Promise.all([find(3), find(4)]);
  await turn();
  t.is(asked.length, 1);
  end();
  t.deepEqual(await first, ["found 1", "found 2"]);
  const late = find(5);
  await until(() => asked.length === 2);
  t.deepEqual(asked.slice(1), [[3, 4, 5]]);
  end();
  t.deepEqual(await second, ["found 3", "found 4"]);
  t.is(await late, "found 5");
  const again = find(6);
  await until(() => asked.length === 3);
  end();
  t.is(await again, "found 6");
});

test("a query has no more keys than it may, and one that fails fails for its own alone", async (t) => {
  const { asked, end, find } = createQueries();
  const found = Promise.allSettled([1, 2, 3, 4, 5, 6, 7].map((key) => find(key)));
  await until(() => asked.length === 1);
  end(new Error("no"));
  await until(() => asked.length === 2);
  end();
  await until(() => asked.length === 3);
  end();
  const outcomes = (await found).map(({ status }) => status === "fulfilled");
  t.deepEqual(asked, [[1, 2, 3], [4, 5, 6], [7]]);
  t.deepEqual(outcomes, [false, false, false, true, true, true, true]);
});
