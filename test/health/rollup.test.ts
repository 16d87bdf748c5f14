import test from "ava";
import { HealthStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { rollUp } from "../../src/health/snapshot.js";

const { OK, DEGRADED, DORMANT, FAILING } = HealthStatus;

/** Facts as digits: pending count known, chain failed, main loop stalled, dormant, other subsystem failed. */
const statuses: readonly (readonly [facts: RegExp, HealthStatus])[] = [
  [/^0..../, FAILING],
  [/^11.../, FAILING],
  [/^1010./, FAILING],
  [/^10.1./, DORMANT],
  [/^10001/, DEGRADED],
  [/^10000/, OK],
];

test("derives the status from each of the 32 combinations of facts", (t) => {
  for (let i = 0; i < 32; i++) {
    const digits = i.toString(2).padStart(5, "0");
    const [pendingCountKnown, chainFailed, mainLoopStalled, dormant, otherFailed] = digits
      .split("")
      .map((digit) => digit === "1") as [boolean, boolean, boolean, boolean, boolean];
    const expected = statuses.filter(([facts]) => facts.test(digits)).map(([, status]) => status);
    t.deepEqual([rollUp({ pendingCountKnown, chainFailed, mainLoopStalled, dormant, otherFailed })], expected, digits);
  }
});
