/**
 * Every protocol over every transport: each cell is compared with the responses of the same node over plain HTTP/1.1.
 * test/contract/cells.ts lists the cells that run every case.
 */
import anyTest, { type TestFn } from "ava";
import { fileTeardown } from "../helpers/nodes/teardown.js";
import { type TransportName, transports } from "../helpers/wire/transports.js";
import { cases } from "./cases.js";
import { cells, type Protocol, streaming } from "./cells.js";
import { askAll, isRead, type Sides, testCell, testSurface } from "./matrix.js";
import { startContractNodesWithTls } from "./nodes.js";

const test = anyTest as TestFn<Sides>;
const fileScope = fileTeardown();

test.before(async (t) => {
  t.timeout(5 * 60_000);
  const { cleartext, tls } = await startContractNodesWithTls(fileScope);
  t.context = { cleartext: await askAll(cleartext), tls: await askAll(tls) };
});

for (const [name, protocols] of Object.entries(cells) as [TransportName, readonly Protocol[]][]) {
  protocols.forEach((protocol) => testCell(test, name, protocol));
}

for (const name of Object.keys(transports) as TransportName[]) {
  testSurface(test, name);
}

test("covers every cell of the matrix", (t) => {
  const everyTransport = [
    "HTTP/1.1",
    "HTTP/2 by prior knowledge",
    "TLS with ALPN h2",
    "TLS with ALPN http/1.1",
    "TLS with ALPN h2 and http/1.1",
  ];
  const unary = ["plain JSON", "JSON-RPC", "Connect GET"];
  const streams = ["Connect JSON", "Connect binary", "gRPC-Web", "gRPC-Web text", "gRPC", "gRPC by Connect"];
  // gRPC has trailers that HTTP/1.1 clients do not read.
  const impossible = everyTransport
    .filter((name) => name.endsWith("HTTP/1.1") || name.endsWith("ALPN http/1.1"))
    .flatMap((name) => ["gRPC", "gRPC by Connect"].map((protocol) => `${protocol} over ${name}`));
  const product = everyTransport.flatMap((name) =>
    [...unary, ...streams].map((protocol) => `${protocol} over ${name}`),
  );
  t.is(impossible.length, 4);
  const expected = product.filter((cell) => !impossible.includes(cell));
  const actual = Object.entries(cells).flatMap(([name, protocols]) =>
    protocols.map((protocol) => `${protocol} over ${name}`),
  );
  t.deepEqual(
    {
      missing: expected.filter((cell) => !actual.includes(cell)),
      unexpected: actual.filter((cell) => !expected.includes(cell)),
    },
    { missing: [], unexpected: [] },
  );
  t.deepEqual([...streaming].sort(), [...streams].sort());
});

test("serves every GET rpc by Connect GET, without side effects", (t) => {
  const reads = cases.filter(({ httpMethod }) => httpMethod === "GET").map(({ method }) => method);
  t.deepEqual([...new Set(reads)].filter((method) => !isRead(method)).map(String), []);
});
