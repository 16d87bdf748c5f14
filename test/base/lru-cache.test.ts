/** The LRU cache: its limits in size and age, and its memory. */
import test from "ava";
import { setTimeout as sleep } from "node:timers/promises";
import { createLruCache } from "../../src/base/caches/lru-cache.js";

test("evicts the least recently used entry", (t) => {
  const cache = createLruCache<number>(3);
  ["a", "b", "c"].forEach((key, i) => cache.set(key, i));
  t.is(cache.get("a"), 0);
  cache.set("d", 3);
  t.deepEqual([...cache.keys()], ["d", "a", "c"]);
  t.is(cache.get("b"), undefined);
  // Replacing an entry evicts nothing.
  cache.set("c", 9);
  t.deepEqual(Object.fromEntries(cache.entries()), { a: 0, c: 9, d: 3 });
});

test("never exceeds its size limit", (t) => {
  const cache = createLruCache<object>(100);
  for (let i = 0; i < 10_000; i++) {
    cache.set(String(i), {});
    t.true(cache.size <= 100);
  }
  t.is(cache.size, 100);
  t.true(cache.has("9999"));
});

test("expires entries after the maximum age, if one is set", async (t) => {
  const [brief, lasting] = [createLruCache<boolean>(3, 5), createLruCache<boolean>(3)];
  brief.set("a", true);
  lasting.set("a", true);
  await sleep(50);
  t.is(brief.get("a"), undefined);
  t.true(lasting.get("a"));
});

test("allocates memory for its entries, not for its capacity", (t) => {
  // Lists of 50 million entries would be 400 MB each.
  const before = process.memoryUsage();
  const cache = createLruCache<number>(50_000_000);
  cache.set("a", 1);
  const after = process.memoryUsage();
  t.true(after.heapTotal + after.external - before.heapTotal - before.external < 50e6);
  t.is(cache.get("a"), 1);
});
