import test from "ava";
import { LogLevel } from "../../gen/gatehouse/info/v1/info_pb.js";
import { maxResponseBytes } from "../../src/base/limits/response-limits.js";
import { maxDiagnosticLines, maxPublicLines } from "../../src/base/logging/log-buffer.js";
import { createLogging } from "../../src/base/logging/log.js";
import { likeLists } from "../helpers/like-lists.js";

function createTestLogging(level: "debug" | "info" | "error" | "silent" = "info") {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  return { ...createLogging({ level, json: true, destination }), lines };
}

test("public lines are those marked public, with only their level, time and message", (t) => {
  const { log, publicLines, diagnosticLines } = createTestLogging();
  log.info({ public: true, secret: "x" }, "Node is up");
  log.warn({ subsystem: "chain" }, "slow");
  likeLists(t, publicLines(), [{ level: LogLevel.INFO, message: "Node is up" }]);
  t.deepEqual(Object.keys(publicLines()[0]!).sort(), ["level", "message", "timeMs"]);
  likeLists(t, diagnosticLines(), [
    { level: LogLevel.INFO, subsystem: undefined, message: "Node is up" },
    { level: LogLevel.WARN, subsystem: "chain", message: "slow" },
  ]);
});

test("the buffers are limited, and drop the oldest lines first", (t) => {
  const { log, publicLines, diagnosticLines } = createTestLogging("silent");
  for (let i = 0; i < maxDiagnosticLines + 7; i++) {
    log.info({ public: true }, `line ${i}`);
  }
  t.is(publicLines().length, maxPublicLines);
  t.is(diagnosticLines().length, maxDiagnosticLines);
  t.is(diagnosticLines()[0]!.message, "line 7");
  t.is(diagnosticLines().at(-1)!.message, `line ${maxDiagnosticLines + 6}`);
  t.is(publicLines().at(-1)!.message, `line ${maxDiagnosticLines + 6}`);
});

test("the buffers drop old lines that would not fit into one response", (t) => {
  const { log, publicLines, diagnosticLines } = createTestLogging("silent");
  for (let i = 0; i < maxDiagnosticLines; i++) {
    log.info({ public: true }, `${i} ${"\u0001".repeat(2_000)}`);
  }
  for (const lines of [publicLines(), diagnosticLines()]) {
    const length = lines.reduce((sum, { message }) => sum + JSON.stringify(message).length, 0);
    t.true(length < maxResponseBytes && length > 0.9 * maxResponseBytes, String(length));
    t.regex(lines.at(-1)!.message!, /^999 /);
  }
});

test("secrets are redacted", (t) => {
  const { log, lines } = createTestLogging();
  log.error({ signature: "0xabc", headers: { authorization: "Bearer x", cookie: "c" } }, "refused");
  t.notRegex(lines.join(""), /0xabc|Bearer|"c"/);
});

for (const [message, redacted] of [
  ["connect ECONNREFUSED 203.0.113.9:80", "connect ECONNREFUSED [address]:80"],
  ["from 203.0.113.9.", "from [address]."],
  ["from 2001:db8::1, then ::1", "from [address], then [address]"],
  ["from [::ffff:203.0.113.9]:53550", "from [[address]]:53550"],
  ["at 12:30:45, in 1.2.3 of a::b, block 17", "at 12:30:45, in 1.2.3 of [address], block 17"],
] as const) {
  test(`redacts addresses: ${message}`, (t) => {
    const { log, diagnosticLines } = createTestLogging();
    log.info({}, message);
    t.is(diagnosticLines()[0]!.message, redacted);
  });
}

test("the level applies to the output; the buffers record from info up", (t) => {
  const { log, diagnosticLines, lines } = createTestLogging("error");
  log.debug({}, "a");
  log.info({}, "b");
  log.error({}, "c");
  t.deepEqual(
    diagnosticLines().map(({ message }) => message),
    ["b", "c"],
  );
  t.is(lines.length, 1);
});

test("truncates messages to 2,000 characters", (t) => {
  const { log, diagnosticLines } = createTestLogging();
  log.info({}, "x".repeat(100_000));
  t.is(diagnosticLines()[0]!.message!.length, 2_000);
});
