/** A cache of what was used last: bounded, and without the memory of a full one while it is empty. */
import test from "ava";
import { setTimeout as sleep } from "node:timers/promises";
import { createLruCache } from "../../src/base/caches/lru-cache.js";

test("what was not used for the longest time makes room", (t) => {
  const cache = createLruCache<number>(3);
  ["a", "b", "c"].forEach((key, i) => cache.set(key, i));
  t.is(cache.get("a"), 0);
  cache.set("d", 3);
  t.deepEqual([...cache.keys()], ["d", "a", "c"]);
  t.is(cache.get("b"), undefined);
  // What is there already takes no more room.
  cache.set("c", 9);
  t.deepEqual(Object.fromEntries(cache.entries()), { a: 0, c: 9, d: 3 });
});

test("it never holds more than it may", (t) => {
  const cache = createLruCache<object>(100);
  for (let i = 0; i < 10_000; i++) {
    cache.set(String(i), {});
    t.true(cache.size <= 100);
  }
  t.is(cache.size, 100);
  t.true(cache.has("9999"));
});

test("what is too old is not there, and without a bound in time nothing is", async (t) => {
  const [brief, lasting] = [createLruCache<boolean>(3, 5), createLruCache<boolean>(3)];
  brief.set("a", true);
  lasting.set("a", true);
  await sleep(50);
  t.is(brief.get("a"), undefined);
  t.true(lasting.get("a"));
});

test("it takes memory for what is in it, not for what may be", (t) => {
  // Lists of 50 million entries would be 400 MB each.
  const before = process.memoryUsage();
  const cache = createLruCache<number>(50_000_000);
  cache.set("a", 1);
  const after = process.memoryUsage();
  t.true(after.heapTotal + after.external - before.heapTotal - before.external < 50e6);
  t.is(cache.get("a"), 1);
});
