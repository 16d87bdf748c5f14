import test from "ava";
import { createMainLoop, type LoopTask } from "../../src/peers/sync/main-loop.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";

function setUp(t: Teardown, tasks: LoopTask[], nowMs: () => number = Date.now) {
  const errors: string[] = [];
  const changes: (string | undefined)[] = [];
  const loop = createMainLoop({
    intervalMs: 10,
    tickDeadlineMs: 30,
    tasks,
    nowMs,
    onTaskError: (task, error) => errors.push(`${task}: ${String(error)}`),
    onLivenessChange: (death) => changes.push(death),
  });
  t.teardown(() => loop.stop("the test is over"));
  return { loop, errors, changes };
}

test("before the first tick there is no heartbeat, and the loop is not stalled", (t) => {
  const { loop } = setUp(t, []);
  t.deepEqual(loop.heartbeat(), {
    heartbeatAgeS: undefined,
    iterationsTotal: 0n,
    exited: false,
    exitReason: undefined,
  });
  t.false(loop.isStalled());
});

test("a task that throws is reported, and stops neither the others nor the loop", async (t) => {
  let runs = 0;
  const { loop, errors } = setUp(t, [
    { name: "bad", run: () => Promise.reject(new Error("boom")) },
    {
      name: "worse",
      run: () => {
        throw new Error("bang");
      },
    },
    { name: "good", run: () => void runs++ },
  ]);
  loop.start();
  await until(() => runs >= 3);
  await loop.stop("test");
  t.true(errors.includes("bad: Error: boom"));
  t.true(errors.includes("worse: Error: bang"));
});

test("a task that hangs delays a tick up to its deadline, is not started twice, and does not stop the others", async (t) => {
  let hanging = 0;
  let runs = 0;
  const { loop } = setUp(t, [
    {
      name: "hangs",
      run: () => {
        hanging++;
        return new Promise<void>(() => undefined);
      },
    },
    { name: "good", run: () => void runs++ },
  ]);
  loop.start();
  await until(() => runs >= 3);
  t.is(hanging, 1);
  t.true(loop.heartbeat().iterationsTotal >= 2n);
  await loop.stop("test");
});

test("a stopped loop reports its reason and is stalled", async (t) => {
  const { loop, changes } = setUp(t, []);
  loop.start();
  await until(() => loop.heartbeat().iterationsTotal > 0n);
  await loop.stop("consensus halted");
  t.like(loop.heartbeat(), { exited: true, exitReason: "consensus halted" });
  t.true(loop.isStalled());
  t.deepEqual(changes, ["consensus halted"]);
  const { iterationsTotal } = loop.heartbeat();
  const other = setUp(t, []).loop;
  other.start();
  await until(() => other.heartbeat().iterationsTotal >= 3n);
  t.is(loop.heartbeat().iterationsTotal, iterationsTotal);
});

test("a loop is stalled only if its last tick is older than 30 s", async (t) => {
  let nowMs = 0;
  const { loop, changes } = setUp(t, [], () => nowMs);
  loop.start();
  await until(() => loop.heartbeat().iterationsTotal > 0n);
  nowMs = 30_000;
  const before = loop.heartbeat().iterationsTotal;
  t.false(loop.isStalled());
  await until(() => loop.heartbeat().iterationsTotal > before);
  await loop.stop("test");
  t.deepEqual(changes, ["test"]);
});

test("the age of the heartbeat is in seconds", async (t) => {
  let nowMs = 1000;
  const { loop } = setUp(t, [], () => nowMs);
  loop.start();
  await until(() => loop.heartbeat().iterationsTotal > 0n);
  await loop.stop("test");
  nowMs += 2500;
  t.true((loop.heartbeat().heartbeatAgeS ?? 0) >= 2.5);
});
