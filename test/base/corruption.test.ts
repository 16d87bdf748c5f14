import test from "ava";
import { CorruptionError, createCorruptionMonitor } from "../../src/base/errors/corruption.js";

test("withdraws the corruption that was recorded since a time, and reports what is left", async (t) => {
  const messages: (string | undefined)[] = [];
  const monitor = createCorruptionMonitor((message) => messages.push(message));
  const fail = (message: string) => () => Promise.reject(new CorruptionError(message));
  await t.throwsAsync(monitor.read("a", fail("A is corrupt.")));
  const sinceMs = performance.now();
  await t.throwsAsync(monitor.run("b", fail("B is corrupt.")));
  monitor.record("c", "C is corrupt.");
  monitor.record("c", undefined);
  monitor.withdraw(sinceMs);
  t.deepEqual([...monitor.corruptItems().keys()], ["a"]);
  t.is(messages.at(-1), "A is corrupt.");
  monitor.withdraw(0);
  t.is(monitor.corruptItems().size, 0);
  t.is(messages.at(-1), undefined);
  t.is(await monitor.read("d", () => Promise.resolve(undefined)), undefined, "absence is known again");
});
