import test from "ava";
import { createShutdownHooks, StopError } from "../../src/node/lifecycle/lifecycle.js";

test("hooks run one after the other, the last one added first", async (t) => {
  const ended: string[] = [];
  const hooks = createShutdownHooks(() => t.fail());
  hooks.add("first", () => void ended.push("first"));
  hooks.add("second", async () => {
    await new Promise((resolve) => setImmediate(resolve));
    ended.push("second");
  });
  await hooks.run();
  t.deepEqual(ended, ["second", "first"]);
});

test("a hook that fails does not stop the others, and the error names it", async (t) => {
  const ended: string[] = [];
  const failed: string[] = [];
  const hooks = createShutdownHooks((name) => failed.push(name));
  hooks.add("the database", () => void ended.push("the database"));
  hooks.add("the listener", () => Promise.reject(new Error("it hangs")));
  hooks.add("the port", () => {
    throw new Error("it is busy");
  });
  const error = await t.throwsAsync(hooks.run(), { instanceOf: StopError });
  t.is(error.message, "These parts of the node could not be stopped: the port (it is busy), the listener (it hangs).");
  t.deepEqual(ended, ["the database"]);
  t.deepEqual(failed, ["the port", "the listener"]);
});

test("a second call of run waits for the first one", async (t) => {
  let release = (): void => undefined;
  const hooks = createShutdownHooks(() => t.fail());
  let count = 0;
  hooks.add("slow", () => {
    count++;
    return new Promise<void>((resolve) => (release = resolve));
  });
  const first = hooks.run();
  let isSecondDone = false;
  const second = hooks.run().then(() => (isSecondDone = true));
  await new Promise((resolve) => setImmediate(resolve));
  t.false(isSecondDone);
  release();
  await Promise.all([first, second]);
  t.is(count, 1);
});

test("a hook added during shutdown runs next, and one added afterwards runs immediately", async (t) => {
  const ended: string[] = [];
  const hooks = createShutdownHooks(() => t.fail());
  hooks.add("parent", () => hooks.add("child", () => void ended.push("child")));
  await hooks.run();
  t.deepEqual(ended, ["child"]);
  hooks.add("late", () => void ended.push("late"));
  t.deepEqual(ended, ["child", "late"]);
});
