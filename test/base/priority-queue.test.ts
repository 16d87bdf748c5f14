import test from "ava";
import { createPriorityQueue } from "../../src/chain/mempool/priority-queue.js";

test("pops the smallest key first, and equal keys in insertion order", (t) => {
  const queue = createPriorityQueue<string>();
  t.is(queue.pop(), undefined);
  const keys = [5, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 1];
  keys.forEach((key, i) => queue.push(key, `${key}.${String(i).padStart(2, "0")}`));
  t.like(queue.pop(), { key: 1, item: "1.01" });
  queue.push(0, "0.99");
  const rest = [];
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    rest.push(next.item);
  }
  t.is(rest[0], "0.99");
  t.deepEqual(rest, rest.toSorted());
  t.is(rest.length, keys.length);
});
