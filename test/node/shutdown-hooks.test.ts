import test from "ava";
import { setImmediate as turn } from "node:timers/promises";
import { createShutdownHooks, StopError } from "../../src/node/lifecycle/lifecycle.js";

test("hooks run one after the other, the last one first, even if some fail, and the error names those", async (t) => {
  const events: string[] = [];
  const hooks = createShutdownHooks((name) => events.push(`failed: ${name}`));
  hooks.add("the database", () => void events.push("the database"));
  hooks.add("the listener", () => Promise.reject(new Error("it hangs")));
  hooks.add("the parent", async () => {
    hooks.add("the child", () => void events.push("the child"));
    await turn();
    events.push("the parent");
  });
  hooks.add("the port", () => {
    throw new Error("it is busy");
  });
  const runs = [hooks.run(), hooks.run()];
  for (const run of runs) {
    const error = await t.throwsAsync(run, { instanceOf: StopError });
    t.is(
      error.message,
      "These parts of the node could not be stopped: the port (it is busy), the listener (it hangs).",
    );
  }
  const expected = ["failed: the port", "the parent", "the child", "failed: the listener", "the database"];
  t.deepEqual(events, expected);
  hooks.add("late", () => void events.push("late"));
  t.deepEqual(events, [...expected, "late"], "added after the shutdown");
});
