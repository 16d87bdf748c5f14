import test from "ava";
import { FairLimit } from "../../src/base/async/fair-limit.js";

/** Runs work that ends when the test says so. Returns the order in which it started, and the ends of what runs. */
function track(limit: FairLimit) {
  const started: string[] = [];
  const ends: (() => void)[] = [];
  const run = (key: string, name: string) =>
    limit.run(key, async () => {
      started.push(name);
      await new Promise<void>((resolve) => ends.push(resolve));
      return name;
    });
  return { started, ends, run };
}

test("runs a limited number at once, and lets keys take turns", async (t) => {
  const { started, ends, run } = track(new FairLimit(2));
  const results = [run("a", "a1"), run("a", "a2"), run("a", "a3"), run("a", "a4"), run("b", "b1"), run("c", "c1")];
  t.deepEqual(started, ["a1", "a2"]);
  while (started.length < 6) {
    t.is(ends.length, 2);
    ends.shift()!();
    await new Promise(setImmediate);
  }
  t.deepEqual(started, ["a1", "a2", "a3", "b1", "c1", "a4"]);
  ends.forEach((end) => end());
  t.deepEqual(await Promise.all(results), ["a1", "a2", "a3", "a4", "b1", "c1"]);
});

test("goes on after work that fails", async (t) => {
  const limit = new FairLimit(1);
  const failing = limit.run("a", () => Promise.reject(new Error("work")));
  const next = limit.run("a", () => Promise.resolve("next"));
  await t.throwsAsync(failing, { message: "work" });
  t.is(await next, "next");
  t.is(await limit.run("b", () => Promise.resolve("later")), "later");
});
