import test from "ava";
import { createMainLoop, type LoopTask } from "../../src/peers/sync/main-loop.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";

function setUp(t: Teardown, tasks: readonly LoopTask[] = []) {
  const errors: string[] = [];
  const changes: (string | undefined)[] = [];
  const clock = { nowMs: 1_000 };
  let ticks = 0n;
  const loop = createMainLoop({
    ...{ intervalMs: 10, tickDeadlineMs: 30, tasks, nowMs: () => clock.nowMs },
    onTaskError: (task, error) => errors.push(`${task}: ${String(error)}`),
    onTick: () => ticks++,
    onLivenessChange: (death) => changes.push(death),
  });
  t.teardown(() => loop.stop("the test is over"));
  const untilTicked = async (times = 1n): Promise<void> => {
    const before = loop.heartbeat().iterationsTotal;
    await until(() => loop.heartbeat().iterationsTotal >= before + times);
  };
  return { loop, errors, changes, clock, untilTicked, ticks: () => ticks };
}

test("a task that throws or hangs is reported or not started twice, and stops neither the others nor the loop", async (t) => {
  let [hanging, runs] = [0, 0];
  const { loop, errors, ticks, untilTicked } = setUp(t, [
    { name: "bad", run: () => Promise.reject(new Error("boom")) },
    {
      name: "worse",
      run() {
        throw new Error("bang");
      },
    },
    {
      name: "hangs",
      run() {
        hanging++;
        return new Promise<void>(() => undefined);
      },
    },
    { name: "good", run: () => void runs++ },
  ]);
  loop.start();
  await untilTicked(3n);
  t.is(ticks(), loop.heartbeat().iterationsTotal);
  t.true(runs >= 3);
  t.is(hanging, 1);
  t.true(errors.includes("bad: Error: boom"));
  t.true(errors.includes("worse: Error: bang"));
});

test("a loop is alive before its first tick and up to 30 s after a tick, and not once it is stopped", async (t) => {
  const { loop, changes, clock, untilTicked } = setUp(t);
  const never = { heartbeatAgeS: undefined, iterationsTotal: 0n, exited: false, exitReason: undefined };
  t.deepEqual(loop.heartbeat(), never);
  t.false(loop.isStalled());
  loop.start();
  await untilTicked();
  clock.nowMs += 30_000;
  t.false(loop.isStalled());
  await untilTicked(2n);
  await loop.stop("consensus halted");
  t.like(loop.heartbeat(), { heartbeatAgeS: 0, exited: true, exitReason: "consensus halted" });
  clock.nowMs += 2_500;
  t.is(loop.heartbeat().heartbeatAgeS, 2.5);
  t.true(loop.isStalled());
  t.deepEqual(changes, ["consensus halted"]);
  const { iterationsTotal } = loop.heartbeat();
  const other = setUp(t);
  other.loop.start();
  await other.untilTicked(3n);
  t.is(loop.heartbeat().iterationsTotal, iterationsTotal);
});
