/** The LRU cache: its limit in age, and its memory. */
import test from "ava";
import { setTimeout as sleep } from "node:timers/promises";
import { createLruCache } from "../../src/base/caches/lru-cache.js";

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
