import test, { type ExecutionContext } from "ava";
import { setTimeout as sleep } from "node:timers/promises";
import { markDatabaseError } from "../../src/base/errors/database-error-kind.js";
import { createBoundedProbe } from "../../src/health/bounded-probe.js";

/** A database of which the test says when and how it answers, and a clock that the test moves. */
function setUp() {
  const asked: { answer: (count: number) => void; fail: (error: Error) => void }[] = [];
  const changes: (string | undefined)[] = [];
  const clock = { nowMs: 0, isSilent: true };
  const probe = createBoundedProbe({
    query: () => new Promise((answer, fail) => asked.push({ answer, fail })),
    maxAgeMs: 1000,
    timeoutMs: 50,
    nowMs: () => clock.nowMs,
    isStalled: () => clock.isSilent,
    onChange: (problem) => changes.push(problem),
  });
  return { asked, changes, clock, probe };
}

/** The same, after a first answer a second ago: 7. */
async function setUpAnswered(t: ExecutionContext) {
  const known = setUp();
  const first = known.probe.read();
  await sleep(0);
  known.asked[0]!.answer(7);
  t.is(await first, 7);
  known.clock.nowMs = 1_000;
  return known;
}

test("a thousand readers share one query, and its answer for a second", async (t) => {
  const { asked, clock, probe } = setUp();
  const reads = Array.from({ length: 1000 }, () => probe.read());
  await sleep(0);
  asked[0]!.answer(7);
  t.true((await Promise.all(reads)).every((count) => count === 7));
  clock.nowMs = 999;
  t.is(probe.read(), 7);
  t.is(asked.length, 1);
  clock.nowMs = 1000;
  void probe.read();
  await sleep(0);
  t.is(asked.length, 2);
});

test("a query that fails makes the count unknown, and the next one heals it", async (t) => {
  const { asked, changes, clock, probe } = setUp();
  const first = probe.read();
  await sleep(0);
  asked[0]!.fail(new Error("no such table"));
  t.is(await first, null);
  clock.nowMs = 1000;
  const second = probe.read();
  await sleep(0);
  asked[1]!.answer(3);
  t.is(await second, 3);
  t.deepEqual(changes, ["no such table", undefined]);
});

test("a query that hangs costs the time-out once, is asked once, and counts when it answers after all", async (t) => {
  const { asked, changes, clock, probe } = setUp();
  t.is(await probe.read(), null);
  clock.nowMs = 5000;
  t.is(probe.read(), null, "nobody waits for it again");
  t.is(asked.length, 1);
  asked[0]!.answer(9);
  await sleep(0);
  t.is(probe.read(), 9);
  t.deepEqual(changes, ["no response within 50 ms", undefined]);
});

test("a query that never answers is replaced after half a minute", async (t) => {
  const { asked, clock, probe } = setUp();
  t.is(await probe.read(), null);
  clock.nowMs = 30_001;
  const again = probe.read();
  await sleep(0);
  t.is(asked.length, 2);
  asked[1]!.answer(4);
  t.is(await again, 4);
  asked[0]!.answer(1);
  await sleep(0);
  t.is(probe.read(), 4, "the answer of the query that was given up counts no more");
});

test("while others are answered, whoever waits is told the last count, and of no problem", async (t) => {
  const { asked, changes, clock, probe } = await setUpAnswered(t);
  clock.isSilent = false;
  t.is(await probe.read(), 7, "the others are answered");
  clock.nowMs = 2_000;
  t.is(probe.read(), 7);
  clock.nowMs = 3_000;
  clock.isSilent = true;
  t.is(probe.read(), null, "nobody is answered");
  t.is(asked.length, 2);
  asked[1]!.fail(Object.assign(new Error("connect"), { code: "ECONNREFUSED" }));
  await sleep(0);
  clock.nowMs = 4_000;
  const third = probe.read();
  await sleep(0);
  const busy = new Error("too many wait");
  markDatabaseError(busy, "busy");
  asked[2]!.fail(busy);
  t.is(await third, null, "nothing is known that could go on");
  t.deepEqual(changes, ["no response within 50 ms", "ECONNREFUSED", "no connection"]);
});

test("a database that is busy is no problem", async (t) => {
  const { asked, changes, probe } = await setUpAnswered(t);
  const second = probe.read();
  await sleep(0);
  const locked = Object.assign(new Error("locked"), { code: "SQLITE_BUSY" });
  markDatabaseError(locked, "locked");
  asked[1]!.fail(locked);
  t.is(await second, 7);
  t.deepEqual(changes, []);
});

test("a query that throws at once is a failed query", async (t) => {
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
  t.is(await probe.read(), null);
});
