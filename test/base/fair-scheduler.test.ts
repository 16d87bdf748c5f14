import test from "ava";
import { setImmediate as nextTick } from "node:timers/promises";
import { until } from "../helpers/nodes/until.js";
import { createFairTurns, FairScheduler, Flow } from "../../src/base/async/fair-scheduler.js";

/** Blocks the event loop. */
function work(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

test("runs tasks at once while the tick has time, and others in later ticks, in order", async (t) => {
  const scheduler = new FairScheduler();
  const flow = new Flow();
  const ran: number[] = [];
  for (let i = 0; i < 20; i++) {
    scheduler.run(flow, (n: number) => void (ran.push(n), work(1)), i);
  }
  const atOnce = ran.length;
  t.true(atOnce >= 8 && atOnce < 20, String(atOnce));
  while (ran.length < 20) {
    await nextTick();
  }
  t.deepEqual(
    ran,
    Array.from({ length: 20 }, (_, i) => i),
  );
  scheduler.run(flow, (n: number) => void ran.push(n), 20);
  t.is(ran.at(-1), 20);
});

test("lets flows take turns", async (t) => {
  const scheduler = new FairScheduler();
  const [many, few] = [new Flow(), new Flow()];
  const ran: string[] = [];
  const push = (name: string): void => void ran.push(name);
  for (let i = 0; i < 1_000; i++) {
    scheduler.defer(many, push, "many");
  }
  scheduler.defer(few, push, "few");
  scheduler.defer(few, push, "few");
  while (ran.length < 1_002) {
    await nextTick();
  }
  t.deepEqual(ran.slice(0, 5), ["many", "few", "many", "few", "many"]);
});

test("skips ticks while the next one is awaited, for as long as it may", async (t) => {
  const paceMs = 50;
  const scheduler = new FairScheduler(1, paceMs);
  const sinceMs = performance.now();
  const ranAtMs: number[] = [];
  const run = (): void => void ranAtMs.push(performance.now());
  scheduler.defer(new Flow(), run, undefined);
  while (ranAtMs.length === 0) {
    scheduler.hurry();
    await nextTick();
  }
  t.true(ranAtMs[0]! - sinceMs >= paceMs - 1, `${ranAtMs[0]! - sinceMs} ms`);
  scheduler.defer(new Flow(), run, undefined);
  await nextTick();
  t.is(ranAtMs.length, 2, "no tick was awaited");
});

test("runs as many tasks as the time allows since it skipped a tick, while ticks are long", async (t) => {
  const scheduler = new FairScheduler(4, 100);
  const flow = new Flow();
  const ran: number[] = [];
  for (let n = 1; n <= 12; n++) {
    scheduler.defer(flow, (item: number) => void ran.push(item), n);
  }
  /** Awaits a tick of the given length, of which the next one is awaited. Returns the number of tasks that it ran. */
  const ranIn = async (ms: number): Promise<number> => {
    const before = ran.length;
    scheduler.hurry();
    work(ms);
    await nextTick();
    return ran.length - before;
  };
  t.is(await ranIn(0), 0, "the first tick is skipped");
  t.true((await ranIn(250)) >= 2);
  t.true((await ranIn(250)) >= 2, "no tick is skipped if each is long");
  t.is(await ranIn(0), 0);
  t.is(await ranIn(600), 4, "the limit of a tick");
});

test("lets the flows of a flow take turns, which count as one for others", async (t) => {
  const scheduler = new FairScheduler();
  const address = new Flow();
  const [many, few, other] = [new Flow(address), new Flow(address), new Flow()];
  const ran: string[] = [];
  const push = (name: string): void => void ran.push(name);
  for (let i = 0; i < 100; i++) {
    scheduler.defer(many, push, "many");
  }
  scheduler.defer(few, push, "few");
  for (let i = 0; i < 4; i++) {
    scheduler.defer(other, push, "other");
  }
  await until(() => ran.length === 105);
  t.deepEqual(ran.slice(0, 8), ["many", "other", "few", "other", "many", "other", "many", "other"]);
});

test("keeps the tasks of a flow apart from those that it has in another scheduler", async (t) => {
  const [busy, other] = [new FairScheduler(1, 1_000), new FairScheduler()];
  const address = new Flow();
  const ran: string[] = [];
  const push = (name: string): void => void ran.push(name);
  for (let i = 0; i < 3; i++) {
    busy.defer(new Flow(address), push, "busy");
  }
  other.defer(new Flow(address), push, "other");
  other.defer(address, push, "other");
  busy.hurry();
  await nextTick();
  t.deepEqual(ran, ["other", "other"]);
  await until(() => ran.length === 5);
});

test("runs few deferred tasks in a tick that should be short", async (t) => {
  const scheduler = new FairScheduler();
  const flow = new Flow();
  const ran: number[] = [];
  [1, 2, 3, 4, 5].forEach((n) => scheduler.defer(flow, (item: number) => void ran.push(item), n));
  scheduler.hurry();
  await nextTick();
  t.deepEqual(ran, [1, 2, 3, 4]);
  await nextTick();
  t.deepEqual(ran, [1, 2, 3, 4, 5]);
});

test("limits the tasks of a tick, and goes on after one that throws", async (t) => {
  const scheduler = new FairScheduler(1);
  const flow = new Flow();
  const ran: number[] = [];
  const thrown = new Promise((resolve) => process.prependOnceListener("uncaughtException", resolve));
  const others = process.listeners("uncaughtException").slice(1);
  others.forEach((listener) => process.off("uncaughtException", listener));
  t.teardown(() => others.forEach((listener) => process.on("uncaughtException", listener)));
  scheduler.defer(flow, (n: number) => void ran.push(n), 1);
  scheduler.defer(flow, (n: number) => void ran.push(n), 2);
  await nextTick();
  t.deepEqual(ran, [1]);
  await nextTick();
  t.deepEqual(ran, [1, 2]);
  const fail = (): void => {
    throw new Error("task");
  };
  scheduler.defer(flow, fail, undefined);
  scheduler.defer(flow, (n: number) => void ran.push(n), 3);
  t.is(((await thrown) as Error).message, "task");
  await nextTick();
  await nextTick();
  t.deepEqual(ran, [1, 2, 3]);
});

test("keys get turns in rotation, and each tick has a limited number", async (t) => {
  const turn = createFairTurns(4);
  const given: string[] = [];
  const wait = (key: string, name: string) => turn(key).then(() => given.push(name));
  const first = wait("a", "a0");
  const all = [...Array.from({ length: 9 }, (_, i) => wait("a", `a${i + 1}`)), wait("b", "b0"), wait("c", "c0")];
  const ticks: number[] = [];
  while (given.length < 12) {
    const before = given.length;
    await nextTick();
    ticks.push(given.length - before);
  }
  await Promise.all([first, ...all]);
  t.true(Math.max(...ticks) <= 4, ticks.join());
  t.true(given.indexOf("b0") <= 3 && given.indexOf("c0") <= 4, given.join());
});
