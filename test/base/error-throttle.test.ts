import test from "ava";
import { createErrorThrottle } from "../../src/base/logging/error-throttle.js";

/** Creates a throttle with a recorded log, and a clock that the test sets. */
function setUp() {
  const lines: string[] = [];
  const fields: Record<string, unknown>[] = [];
  const clock = { nowMs: 0 };
  const write = (level: string) => (logged: object, message: string) => {
    lines.push(`${level} ${message}`);
    fields.push(logged as Record<string, unknown>);
  };
  const throttle = createErrorThrottle({
    log: { info: write("info"), warn: write("warn"), error: write("error") },
    fields: { subsystem: "chain" },
    message: "It does not work",
    recoveryMessage: "It works again",
    nowMs: () => clock.nowMs,
  });
  return { lines, fields, clock, throttle };
}

const connectError = (): Error => Object.assign(new Error("connect"), { code: "ECONNREFUSED" });

test("logs a repeated error at first, once a minute, and at its end", (t) => {
  const { lines, fields, clock, throttle } = setUp();
  const first = connectError();
  for (; clock.nowMs < 130_000; clock.nowMs += 250) {
    throttle.failed(clock.nowMs === 0 ? first : connectError());
  }
  t.deepEqual(lines, [
    "error It does not work",
    "error It does not work (240 more times)",
    "error It does not work (240 more times)",
  ]);
  t.deepEqual(fields[0], { subsystem: "chain", err: first });
  t.deepEqual(fields[1], { subsystem: "chain", more: 240, problem: "connect" });
  throttle.succeeded();
  throttle.succeeded();
  t.deepEqual(lines.slice(3), ["info It works again"]);
  t.deepEqual(fields[3], { subsystem: "chain", more: 39 });
});

test("an error once a minute has one stack trace, then counts", (t) => {
  const { lines, fields, clock, throttle } = setUp();
  for (let i = 0; i < 5; i++, clock.nowMs += 60_250) {
    throttle.failed(connectError());
  }
  t.deepEqual(lines, ["error It does not work", ...Array<string>(4).fill("error It does not work (1 more times)")]);
  t.is(fields.filter(({ err }) => err !== undefined).length, 1, "one stack trace");
  clock.nowMs += 3_600_000;
  throttle.failed(connectError());
  t.is(lines.at(-1), "error It does not work");
});

test("an intermittent error has no more lines than a permanent one", (t) => {
  const { lines, clock, throttle } = setUp();
  for (; clock.nowMs < 125_000; clock.nowMs += 250) {
    throttle.failed(connectError());
    throttle.succeeded();
  }
  t.is(lines.length, 6);
});

test("logs another kind of error at once, but limits the number of kinds", (t) => {
  const { lines, fields, clock, throttle } = setUp();
  throttle.failed(connectError());
  throttle.failed(new Error("no such table"), { requestId: "1" });
  t.is(lines.length, 2);
  t.like(fields[1], { subsystem: "chain", requestId: "1" });
  for (let i = 0; i < 1_000; i++) {
    throttle.failed(new Error(`unique text ${i}`));
  }
  t.true(lines.length < 20, String(lines.length));
  clock.nowMs = 3_600_000;
  lines.length = 0;
  throttle.failed("a text");
  t.is(lines.length, 1);
});

test("logs an error in full after a long pause, even with uncounted repetitions", (t) => {
  const { lines, fields, clock, throttle } = setUp();
  throttle.failed(connectError());
  throttle.failed(connectError());
  clock.nowMs = 3 * 3_600_000;
  throttle.failed(connectError());
  t.deepEqual(lines, ["error It does not work", "error It does not work"]);
  t.truthy(fields[1]!.err);
  throttle.succeeded();
  t.is(lines.at(-1), "info It works again");
  t.is(fields.at(-1)!.more, 1);
});
