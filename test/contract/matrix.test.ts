/**
 * Every protocol over every transport: each cell is compared with the responses of the same node over plain HTTP/1.1.
 * test/contract/compare.ts says over which transport a protocol runs every case.
 */
import anyTest, { type TestFn } from "ava";
import { makeCertificate } from "../helpers/nodes/start-node.js";
import { fileTeardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { type TransportName, transports } from "../helpers/wire/transports.js";
import { cases } from "./cases.js";
import { protocolsOver } from "./compare.js";
import { askAll, isRead, type Sides, testCell, testSurface } from "./matrix.js";
import { startContractNodesTwice } from "./nodes.js";

const test = anyTest as TestFn<Sides>;
const fileScope = fileTeardown();

test.before(async (t) => {
  t.timeout(5 * 60_000);
  const { cert, key } = await makeCertificate(await temporaryDirectory(fileScope));
  const [cleartext, tls] = await startContractNodesTwice(fileScope, { "tls-cert": cert, "tls-key": key });
  t.context = { cleartext: await askAll(cleartext), tls: await askAll(tls) };
});

for (const name of Object.keys(transports) as TransportName[]) {
  protocolsOver(name).forEach((protocol) => testCell(test, name, protocol));
  testSurface(test, name);
}

test("serves every GET rpc by Connect GET, without side effects", (t) => {
  const reads = cases.filter(({ httpMethod }) => httpMethod === "GET").map(({ method }) => method);
  t.deepEqual([...new Set(reads)].filter((method) => !isRead(method)).map(String), []);
});
