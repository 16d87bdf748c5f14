import test from "ava";
import { createErrorThrottle } from "../../src/base/logging/error-throttle.js";

/** A log whose lines the test reads, and a clock that it moves. */
function setUp() {
  const lines: string[] = [];
  const fields: Record<string, unknown>[] = [];
  const clock = { nowMs: 0 };
  const write = (level: string) => (given: object, message: string) => {
    lines.push(`${level} ${message}`);
    fields.push(given as Record<string, unknown>);
  };
  const troubles = createErrorThrottle({
    log: { info: write("info"), warn: write("warn"), error: write("error") },
    fields: { subsystem: "chain" },
    message: "It does not work",
    recoveryMessage: "It works again",
    nowMs: () => clock.nowMs,
  });
  return { lines, fields, clock, troubles };
}

const refused = (): Error => Object.assign(new Error("connect"), { code: "ECONNREFUSED" });

test("of what comes again and again there is a line at first, one a minute, and one at the end", (t) => {
  const { lines, fields, clock, troubles } = setUp();
  const first = refused();
  for (; clock.nowMs < 130_000; clock.nowMs += 250) {
    troubles.failed(clock.nowMs === 0 ? first : refused());
  }
  t.deepEqual(lines, [
    "error It does not work",
    "error It does not work (240 more times)",
    "error It does not work (240 more times)",
  ]);
  t.deepEqual(fields[0], { subsystem: "chain", err: first });
  t.deepEqual(fields[1], { subsystem: "chain", more: 240, problem: "connect" });
  troubles.succeeded();
  troubles.succeeded();
  t.deepEqual(lines.slice(3), ["info It works again"]);
  t.deepEqual(fields[3], { subsystem: "chain", more: 39 });
});

test("what is tried once a minute, and fails each time, is told of once and then counted", (t) => {
  const { lines, fields, clock, troubles } = setUp();
  for (let i = 0; i < 5; i++, clock.nowMs += 60_250) {
    troubles.failed(refused());
  }
  t.deepEqual(lines, ["error It does not work", ...Array<string>(4).fill("error It does not work (1 more times)")]);
  t.is(fields.filter(({ err }) => err !== undefined).length, 1, "one stack trace");
  clock.nowMs += 3_600_000;
  troubles.failed(refused());
  t.is(lines.at(-1), "error It does not work");
});

test("what comes and goes has no more lines than what stays", (t) => {
  const { lines, clock, troubles } = setUp();
  for (; clock.nowMs < 125_000; clock.nowMs += 250) {
    troubles.failed(refused());
    troubles.succeeded();
  }
  t.is(lines.length, 6);
});

test("another kind is told of at once; many kinds are not", (t) => {
  const { lines, fields, clock, troubles } = setUp();
  troubles.failed(refused());
  troubles.failed(new Error("no such table"), { requestId: "1" });
  t.is(lines.length, 2);
  t.like(fields[1], { subsystem: "chain", requestId: "1" });
  for (let i = 0; i < 1_000; i++) {
    troubles.failed(new Error(`a text of its own: ${i}`));
  }
  t.true(lines.length < 20, String(lines.length));
  clock.nowMs = 3_600_000;
  lines.length = 0;
  troubles.failed("a text");
  t.is(lines.length, 1);
});

test("what comes again after a long while has a line of its own", (t) => {
  const { lines, fields, clock, troubles } = setUp();
  troubles.failed(refused());
  troubles.succeeded();
  clock.nowMs = 600_000;
  troubles.failed(refused());
  t.deepEqual(lines, ["error It does not work", "info It works again", "error It does not work"]);
  t.truthy(fields[2]!.err);
});

test("what comes again after a long while has a line of its own, whatever was not counted of it before", (t) => {
  const { lines, fields, clock, troubles } = setUp();
  troubles.failed(refused());
  troubles.failed(refused());
  clock.nowMs = 3 * 3_600_000;
  troubles.failed(refused());
  t.deepEqual(lines, ["error It does not work", "error It does not work"]);
  t.truthy(fields[1]!.err);
  troubles.succeeded();
  t.is(lines.at(-1), "info It works again");
  t.is(fields.at(-1)!.more, 1);
});
