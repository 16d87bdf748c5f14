/** Limits on what a request may make the node decode. */
import test from "ava";
import { gzipSync } from "node:zlib";
import { startEdgeServer } from "../helpers/nodes/edge-server.js";
import { sharedTargets } from "../helpers/nodes/start-node.js";
import { until } from "../helpers/nodes/until.js";
import { openFrom } from "../helpers/wire/plain-client.js";
import { connectTransport } from "../helpers/wire/transports.js";

const targetOf = sharedTargets();
const search = "/gatehouse.search.v1.SearchService/Search";
const submit = "/gatehouse.chain.v1.ChainService/SubmitTransaction";
const name = "HTTP/2 by prior knowledge";

test("a request of a read has at most 64 KiB, compressed or not; others may have more", async (t) => {
  const client = connectTransport(name, targetOf(name));
  t.teardown(() => client.close());
  const json = Buffer.from(`{${" ".repeat(70_000)}}`);
  for (const [path, headers, body, code] of [
    [search, {}, json, "resource_exhausted"],
    [search, { "Content-Encoding": "gzip" }, gzipSync(json), "resource_exhausted"],
    [submit, {}, json, "invalid_argument"],
    [submit, { "Content-Encoding": "gzip" }, gzipSync(json), "invalid_argument"],
  ] as const) {
    const all = { "Content-Type": "application/json", ...headers };
    const { text } = await client.ask(path, { method: "POST", headers: all, body });
    t.is((JSON.parse(text) as { code: string }).code, code, `${path} ${JSON.stringify(headers)}: ${text}`);
  }
});

test("rejects JSON with more than 20,000 values", async (t) => {
  const client = connectTransport(name, targetOf(name));
  t.teardown(() => client.close());
  const headers = { "Content-Type": "application/json" };
  const bodyOf = (count: number): string =>
    `{"jsonrpc":"2.0","id":1,"method":"info.getVersion","other":[${Array.from({ length: count }, () => 0).join()}]}`;
  const fine = await client.ask("/", { method: "POST", headers, body: bodyOf(19_000) });
  t.regex(fine.text, /"result"/);
  const { text } = await client.ask("/", { method: "POST", headers, body: bodyOf(20_000) });
  t.regex(text, /The request body has more than 20000 values\./);
});

test("reads a body in chunks of few bytes, but not a long one", async (t) => {
  const server = await startEdgeServer(t);
  server.release();
  const send = async (chunks: number): Promise<string> => {
    const socket = openFrom(t, server.port, "127.0.0.5");
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    socket.write(
      "POST /gatehouse.zk.v1.ZkService/GetMerkleRoot HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n",
    );
    socket.write(`Transfer-Encoding: chunked\r\n\r\n${"1\r\n \r\n".repeat(chunks)}2\r\n{}\r\n0\r\n\r\n`);
    await until(() => /\}\s*(0\s*)?$/.test(text));
    return text;
  };
  t.regex(await send(4_000), /^HTTP\/1\.1 200 /);
  t.regex(await send(5_000), /The request body arrives in pieces of less than 32 bytes\./);
});
