import test from "ava";
import { createShutdownHooks, StopError } from "../../src/node/lifecycle/shutdown-hooks.js";

test("the newest is ended first, and each waits for the one before it", async (t) => {
  const ended: string[] = [];
  const stops = createShutdownHooks(() => t.fail());
  stops.add("first", () => void ended.push("first"));
  stops.add("second", async () => {
    await new Promise((resolve) => setImmediate(resolve));
    ended.push("second");
  });
  await stops.run();
  t.deepEqual(ended, ["second", "first"]);
});

test("one that cannot be ended keeps no other from its end, and is named", async (t) => {
  const ended: string[] = [];
  const failed: string[] = [];
  const stops = createShutdownHooks((name) => failed.push(name));
  stops.add("the database", () => void ended.push("the database"));
  stops.add("the wire", () => Promise.reject(new Error("it hums")));
  stops.add("the door", () => {
    throw new Error("it jams");
  });
  const error = await t.throwsAsync(stops.run(), { instanceOf: StopError });
  t.is(error.message, "These parts of the node could not be stopped: the door (it jams), the wire (it hums).");
  t.deepEqual(ended, ["the database"]);
  t.deepEqual(failed, ["the door", "the wire"]);
});

test("a second caller waits for the same end", async (t) => {
  let release = (): void => undefined;
  const stops = createShutdownHooks(() => t.fail());
  let count = 0;
  stops.add("slow", () => {
    count++;
    return new Promise<void>((resolve) => (release = resolve));
  });
  const first = stops.run();
  let isSecondDone = false;
  const second = stops.run().then(() => (isSecondDone = true));
  await new Promise((resolve) => setImmediate(resolve));
  t.false(isSecondDone);
  release();
  await Promise.all([first, second]);
  t.is(count, 1);
});

test("what begins while all ends is ended as well, and so is what begins after that", async (t) => {
  const ended: string[] = [];
  const stops = createShutdownHooks(() => t.fail());
  stops.add("parent", () => stops.add("child", () => void ended.push("child")));
  await stops.run();
  t.deepEqual(ended, ["child"]);
  stops.add("late", () => void ended.push("late"));
  t.deepEqual(ended, ["child", "late"]);
});
