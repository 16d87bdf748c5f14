/** Nodes with two workers respond as nodes without: every case by plain JSON, one of each kind by other protocols. */
import anyTest, { type TestFn } from "ava";
import { fileTeardown } from "../helpers/nodes/teardown.js";
import type { TransportName } from "../helpers/wire/transports.js";
import { protocolsOver } from "./compare.js";
import { askAll, type Sides, testCell, testSurface } from "./matrix.js";
import { startContractNodesTwice } from "./nodes.js";

const test = anyTest as TestFn<Sides>;
const fileScope = fileTeardown();

test.before(async (t) => {
  t.timeout(5 * 60_000);
  const [alone, workers] = await startContractNodesTwice(fileScope, { workers: "2" });
  // Cases that change the state change both nodes.
  await askAll(workers);
  t.context = { cleartext: { ...(await askAll(alone)), nodes: workers } };
});

for (const name of ["HTTP/1.1", "HTTP/2 by prior knowledge"] satisfies TransportName[]) {
  protocolsOver(name).forEach((protocol) =>
    testCell(test, name, protocol, protocol === "plain JSON" ? "all" : "kinds"),
  );
  testSurface(test, name);
}
