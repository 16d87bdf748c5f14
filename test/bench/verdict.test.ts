/** The verdict on an attack: what other clients may lose, and what ends a run with exit code 1. */
import test from "ava";
import {
  answeredShare,
  findViolations,
  type Measured,
  type NodeState,
  p99LimitMs,
  percent,
  type Phase,
  type ServiceName,
} from "../../tools/bench/attacks/verdict.js";

/** A service of which 100 requests were sent, and these answered in equal times. */
const measured = (ms: number, answered = 100, limited = 0): Measured => ({
  latencies: Array.from({ length: answered }, () => ms),
  sent: 100,
  limited,
  others: {},
});

function phase(ms: number, others: Partial<Phase<ServiceName>> = {}): Phase<ServiceName> {
  const same = measured(ms);
  return {
    ...{ "/livez": same, "/health": same, "storage read": same, submission: same },
    ...{ orchestrator: same, neighbor: same },
    ...others,
  };
}

const alive: NodeState = { isAlive: true, peakBytes: 200 * 1024 ** 2, limitBytes: 256 * 1024 ** 2 };
const idle = phase(2);

test("a node that serves others as before keeps all limits", (t) => {
  t.deepEqual(findViolations(idle, phase(20), alive), []);
  t.deepEqual(findViolations(idle, phase(2, { "/livez": measured(2, 99) }), alive), []);
});

test("a p99 may be ten times that of the idle node, and 250 ms at most", (t) => {
  t.is(p99LimitMs(measured(2)), 20);
  t.is(p99LimitMs(measured(40)), 250);
  t.deepEqual(findViolations(idle, phase(2, { submission: measured(21) }), alive), ["submission: p99 21 ms, above 20"]);
});

test("requests without a response violate the share, also if all others were fast", (t) => {
  t.deepEqual(findViolations(idle, phase(2, { "/health": measured(1, 98) }), alive), [
    "/health: 98 % answered, below 99 %",
  ]);
  t.deepEqual(findViolations(idle, phase(2, { "/health": measured(1, 0) }), alive), [
    "/health: 0 % answered, below 99 %",
  ]);
  t.is(percent(answeredShare({ latencies: [], sent: 0, limited: 0, others: {} })), "–");
});

test("a 429 is enough for an honest client on the attacker's address, but not for an orchestrator or for others", (t) => {
  const told = measured(2, 50, 50);
  t.deepEqual(findViolations(idle, phase(2, { neighbor: told }), alive), []);
  t.deepEqual(findViolations(idle, phase(2, { orchestrator: told, "storage read": told }), alive), [
    "storage read: 50 % answered, below 99 %",
    "orchestrator on the attacker's address: 50 of 100 probes without 200, 50 of these 429",
  ]);
  t.deepEqual(findViolations(idle, phase(2, { neighbor: measured(2, 50, 48) }), alive), [
    "honest client on the attacker's address: 2 of 100 requests without 200 or 429",
  ]);
});

test("a single unanswered probe of an orchestrator is a violation", (t) => {
  t.deepEqual(findViolations(idle, phase(2, { orchestrator: measured(2, 99) }), alive), [
    "orchestrator on the attacker's address: 1 of 100 probes without 200, 0 of these 429",
  ]);
});

test("a process that ended and memory above the limit are violations", (t) => {
  t.deepEqual(findViolations(idle, idle, { ...alive, isAlive: false, peakBytes: 257 * 1024 ** 2 }), [
    "a process of the node ended",
    "memory 257 MiB, above 256",
  ]);
  t.deepEqual(findViolations(idle, idle, { ...alive, peakBytes: undefined }), []);
});
