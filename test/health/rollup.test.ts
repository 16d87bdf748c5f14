import test from "ava";
import { HealthStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { rollUp } from "../../src/health/rollup.js";

const { OK, DEGRADED, DORMANT, FAILING } = HealthStatus;
const F = false;
const T = true;

// Columns: pending count known, chain failed, main loop stalled, dormant, other subsystem failed → status.
const truthTable: [boolean, boolean, boolean, boolean, boolean, HealthStatus][] = [
  [T, F, F, F, F, OK],
  [T, F, F, F, T, DEGRADED],
  [T, F, F, T, F, DORMANT],
  [T, F, F, T, T, DORMANT],
  [T, F, T, F, F, FAILING],
  [T, F, T, F, T, FAILING],
  [T, F, T, T, F, DORMANT],
  [T, F, T, T, T, DORMANT],
  [T, T, F, F, F, FAILING],
  [T, T, F, F, T, FAILING],
  [T, T, F, T, F, FAILING],
  [T, T, F, T, T, FAILING],
  [T, T, T, F, F, FAILING],
  [T, T, T, F, T, FAILING],
  [T, T, T, T, F, FAILING],
  [T, T, T, T, T, FAILING],
  [F, F, F, F, F, FAILING],
  [F, F, F, F, T, FAILING],
  [F, F, F, T, F, FAILING],
  [F, F, F, T, T, FAILING],
  [F, F, T, F, F, FAILING],
  [F, F, T, F, T, FAILING],
  [F, F, T, T, F, FAILING],
  [F, F, T, T, T, FAILING],
  [F, T, F, F, F, FAILING],
  [F, T, F, F, T, FAILING],
  [F, T, F, T, F, FAILING],
  [F, T, F, T, T, FAILING],
  [F, T, T, F, F, FAILING],
  [F, T, T, F, T, FAILING],
  [F, T, T, T, F, FAILING],
  [F, T, T, T, T, FAILING],
];

test("lists every combination once", (t) => {
  t.is(new Set(truthTable.map((row) => row.slice(0, 5).join())).size, 2 ** 5);
});

for (const [pendingCountKnown, chainFailed, mainLoopStalled, dormant, otherFailed, status] of truthTable) {
  const facts = { pendingCountKnown, chainFailed, mainLoopStalled, dormant, otherFailed };
  const named = Object.entries(facts)
    .filter(([, holds]) => holds)
    .map(([name]) => name);
  test(`${named.join(", ") || "nothing"} → ${HealthStatus[status]}`, (t) => {
    t.is(rollUp(facts), status);
  });
}
