import test from "ava";
import { createFairTurns } from "../../src/base/async/fair-turns.js";
import { yieldToEventLoop } from "../../src/base/async/yielding.js";

test("keys get turns in rotation, and each tick has a limited number", async (t) => {
  const turn = createFairTurns(4);
  const given: string[] = [];
  const wait = (key: string, name: string) => turn(key).then(() => given.push(name));
  const first = wait("a", "a0");
  const all = [...Array.from({ length: 9 }, (_, i) => wait("a", `a${i + 1}`)), wait("b", "b0"), wait("c", "c0")];
  await first;
  t.deepEqual(given, ["a0"]);
  const ticks: number[] = [];
  while (given.length < 12) {
    const before = given.length;
    await yieldToEventLoop();
    ticks.push(given.length - before);
  }
  await Promise.all(all);
  t.true(Math.max(...ticks) <= 4, ticks.join());
  t.true(given.indexOf("b0") <= 3 && given.indexOf("c0") <= 4, given.join());
});
