import test from "ava";
import { checkDescriptors, divideDescriptors, neededDescriptors } from "../../src/node/lifecycle/descriptors.js";

test("connections leave descriptors for the database, the log and probes", (t) => {
  for (const limit of [192, 256, 1_024, 65_536]) {
    const { public: clients, internal, small } = divideDescriptors(limit);
    // Two small ports, for metrics and MCP.
    t.true(clients + internal + 2 * small <= limit - 144, String(limit));
    t.true(clients >= 30 && internal >= 12 && small >= 3, String(limit));
  }
  t.true(divideDescriptors(neededDescriptors(4_000)).public >= 4_000);
  t.deepEqual(divideDescriptors(Infinity), { public: Infinity, internal: Infinity, small: Infinity });
});

test("too few descriptors for a node are an error with the limit, the need and the remedy", (t) => {
  t.notThrows(() => checkDescriptors(192));
  t.notThrows(() => checkDescriptors(Infinity));
  t.throws(() => checkDescriptors(64), {
    name: "StartError",
    message:
      "This process may have 64 open files, and a node needs at least 192; raise the limit: `ulimit -n 65536` in the shell, or LimitNOFILE=65536 in the systemd unit.",
  });
});
