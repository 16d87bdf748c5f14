import test, { type ExecutionContext } from "ava";
import { setTimeout as sleep } from "node:timers/promises";
import { markDatabaseError } from "../../src/base/errors/database-error-kind.js";
import { createBoundedProbe } from "../../src/health/bounded-probe.js";

/** Creates a probe with queries that the test completes, and a clock that the test moves. */
function setUp() {
  const queries: { resolve: (count: number) => void; reject: (error: Error) => void }[] = [];
  const changes: (string | undefined)[] = [];
  const clock = { nowMs: 0, isSilent: true };
  const probe = createBoundedProbe({
    query: () => new Promise((resolve, reject) => queries.push({ resolve, reject })),
    maxAgeMs: 1000,
    timeoutMs: 50,
    nowMs: () => clock.nowMs,
    isStalled: () => clock.isSilent,
    onChange: (problem) => changes.push(problem),
  });
  return { queries, changes, clock, probe };
}

/** Creates a probe whose first query returned 7 a second ago. */
async function setUpAnswered(t: ExecutionContext) {
  const known = setUp();
  const first = known.probe();
  await sleep(0);
  known.queries[0]!.resolve(7);
  t.is(await first, 7);
  known.clock.nowMs = 1_000;
  return known;
}

test("shares one query and its result for a second among a thousand reads", async (t) => {
  const { queries, clock, probe } = setUp();
  const reads = Array.from({ length: 1000 }, () => probe());
  await sleep(0);
  queries[0]!.resolve(7);
  t.true((await Promise.all(reads)).every((count) => count === 7));
  clock.nowMs = 999;
  t.is(probe(), 7);
  t.is(queries.length, 1);
  clock.nowMs = 1000;
  void probe();
  await sleep(0);
  t.is(queries.length, 2);
});

test("returns null after a failed query, and recovers with the next one", async (t) => {
  const { queries, changes, clock, probe } = setUp();
  const first = probe();
  await sleep(0);
  queries[0]!.reject(new Error("no such table"));
  t.is(await first, null);
  clock.nowMs = 1000;
  const second = probe();
  await sleep(0);
  queries[1]!.resolve(3);
  t.is(await second, 3);
  t.deepEqual(changes, ["no such table", undefined]);
});

test("waits once for a hung query, does not repeat it, and uses its late result", async (t) => {
  const { queries, changes, clock, probe } = setUp();
  t.is(await probe(), null);
  clock.nowMs = 5000;
  t.is(probe(), null, "nobody waits for it again");
  t.is(queries.length, 1);
  queries[0]!.resolve(9);
  await sleep(0);
  t.is(probe(), 9);
  t.deepEqual(changes, ["no response within 50 ms", undefined]);
});

test("abandons a query after 30 s", async (t) => {
  const { queries, clock, probe } = setUp();
  t.is(await probe(), null);
  clock.nowMs = 30_001;
  const again = probe();
  await sleep(0);
  t.is(queries.length, 2);
  queries[1]!.resolve(4);
  t.is(await again, 4);
  queries[0]!.resolve(1);
  await sleep(0);
  t.is(probe(), 4, "the answer of the query that was given up counts no more");
});

test("returns the last count after a timeout if the database completes other queries", async (t) => {
  const { queries, changes, clock, probe } = await setUpAnswered(t);
  clock.isSilent = false;
  t.is(await probe(), 7, "the others are answered");
  clock.nowMs = 2_000;
  t.is(probe(), 7);
  clock.nowMs = 3_000;
  clock.isSilent = true;
  t.is(probe(), null, "nobody is answered");
  t.is(queries.length, 2);
  queries[1]!.reject(Object.assign(new Error("connect"), { code: "ECONNREFUSED" }));
  await sleep(0);
  clock.nowMs = 4_000;
  const third = probe();
  await sleep(0);
  const busy = new Error("too many wait");
  markDatabaseError(busy, "busy");
  queries[2]!.reject(busy);
  t.is(await third, null, "nothing is known that could go on");
  t.deepEqual(changes, ["no response within 50 ms", "ECONNREFUSED", "no connection"]);
});

test("reports no problem for a busy database", async (t) => {
  const { queries, changes, probe } = await setUpAnswered(t);
  const second = probe();
  await sleep(0);
  const locked = Object.assign(new Error("locked"), { code: "SQLITE_BUSY" });
  markDatabaseError(locked, "locked");
  queries[1]!.reject(locked);
  t.is(await second, 7);
  t.deepEqual(changes, []);
});

test("treats a synchronous exception as a failed query", async (t) => {
  const probe = createBoundedProbe({
    query: () => {
      throw new Error("pool is gone");
    },
    maxAgeMs: 1000,
    timeoutMs: 50,
    nowMs: Date.now,
    isStalled: () => true,
    onChange: () => undefined,
  });
  t.is(await probe(), null);
});
