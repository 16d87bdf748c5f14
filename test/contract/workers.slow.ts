/** Nodes whose ports two workers serve answer as nodes do that serve them by themselves: every case by plain JSON, and one of each kind by the other protocols, in cleartext. */
import anyTest, { type TestFn } from "ava";
import { fileTeardown } from "../helpers/nodes/teardown.js";
import type { TransportName } from "../helpers/wire/transports.js";
import { cells } from "./cells.js";
import { askAll, type Sides, testCell, testSurface } from "./matrix.js";
import { startContractNodesWithWorkers } from "./nodes.js";

const test = anyTest as TestFn<Sides>;
const fileScope = fileTeardown();

test.before(async (t) => {
  t.timeout(5 * 60_000);
  const { workers, alone } = await startContractNodesWithWorkers(fileScope);
  // What some cases change, they change in both.
  await askAll(workers);
  t.context = { cleartext: { ...(await askAll(alone)), nodes: workers } };
});

for (const name of ["HTTP/1.1", "HTTP/2 by prior knowledge"] satisfies TransportName[]) {
  cells[name].forEach((protocol) => testCell(test, name, protocol, protocol === "plain JSON" ? "all" : "kinds"));
  testSurface(test, name);
}
