/** Limits on what a request may make the node decode. */
import test from "ava";
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { gzipSync } from "node:zlib";
import { startEdgeServer } from "../helpers/nodes/edge-server.js";
import { sharedTargets } from "../helpers/nodes/start-node.js";
import { until } from "../helpers/nodes/until.js";
import { openFrom } from "../helpers/wire/plain-client.js";
import { connectTransport } from "../helpers/wire/transports.js";

const targetOf = sharedTargets();
const search = "/gatehouse.search.v1.SearchService/Search";
const submit = "/gatehouse.chain.v1.ChainService/SubmitTransaction";
const check = "/grpc.health.v1.Health/Check";
const name = "HTTP/2 by prior knowledge";

test("a request of a read has at most 64 KiB, compressed or not; others have at most 2 MiB", async (t) => {
  const client = connectTransport(name, targetOf(name));
  t.teardown(() => client.close());
  const json = Buffer.from(`{${" ".repeat(70_000)}}`);
  const large = Buffer.from(`{${" ".repeat(2 * 1024 * 1024)}}`);
  for (const [path, headers, body, code] of [
    [search, {}, json, "resource_exhausted"],
    [search, { "Content-Encoding": "gzip" }, gzipSync(json), "resource_exhausted"],
    [check, {}, json, "resource_exhausted"],
    [check, { "Content-Encoding": "gzip" }, gzipSync(json), "resource_exhausted"],
    [submit, {}, json, "invalid_argument"],
    [submit, { "Content-Encoding": "gzip" }, gzipSync(json), "invalid_argument"],
    [submit, {}, large, "resource_exhausted"],
    [submit, { "Content-Encoding": "gzip" }, gzipSync(large), "resource_exhausted"],
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
  t.regex(text, /The request body has more than 20000 values, at line 1, column \d+\./);
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

test("a message of a reflection stream has at most 64 KiB, compressed or not", async (t) => {
  const client = connectTransport(name, targetOf(name));
  t.teardown(() => client.close());
  const message = Buffer.concat([Buffer.from([0x3a, 0xf0, 0xa2, 0x04]), Buffer.alloc(70_000, "a")]);
  for (const [flags, bytes] of [
    [0, message],
    [1, gzipSync(message)],
  ] as const) {
    const headers = { "Content-Type": "application/connect+proto", "Connect-Content-Encoding": "gzip" };
    const prefix = Buffer.from([flags, 0, 0, 0, 0]);
    prefix.writeUInt32BE(bytes.length, 1);
    const body = Buffer.concat([prefix, bytes]);
    const { text } = await client.ask("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", {
      method: "POST",
      headers,
      body,
    });
    t.regex(text, /"code":"resource_exhausted"/, `flags ${flags}: ${text}`);
  }
});

test("a stream of compressed messages may be longer than the memory of its connection", async (t) => {
  const client = connectTransport(name, targetOf(name));
  t.teardown(() => client.close());
  const message = gzipSync(`{"host":"a","listServices":"*"}${" ".repeat(60_000)}`);
  const prefix = Buffer.from([1, 0, 0, 0, 0]);
  prefix.writeUInt32BE(message.length, 1);
  const count = 600;
  const { text } = await client.ask("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", {
    method: "POST",
    headers: { "Content-Type": "application/connect+json", "Connect-Content-Encoding": "gzip" },
    body: Buffer.concat(Array.from({ length: count }, () => [prefix, message]).flat()),
  });
  t.is(text.split('"listServicesResponse"').length - 1, count, text.slice(-300));
});

test("rejects a message with more than 100,000 fields", async (t) => {
  const client = connectTransport(name, targetOf(name));
  t.teardown(() => client.close());
  const headers = { "Content-Type": "application/proto" };
  const send = async (count: number, field: Buffer): Promise<string> =>
    (await client.ask(submit, { method: "POST", headers, body: Buffer.alloc(count * field.length, field) })).text;
  // An empty transaction; and one with an empty body, which counts as two fields.
  const [outer, nested] = [Buffer.from([0x0a, 0]), Buffer.from([0x0a, 2, 0x0a, 0])];
  const expected = /The request has more than 100000 fields\./;
  t.notRegex(await send(100_000, outer), expected);
  t.regex(await send(100_001, outer), expected);
  t.notRegex(await send(50_000, nested), expected);
  t.regex(await send(50_001, nested), expected);
});

test("rewrites a transaction in JSON with little memory for each of its bytes", async (t) => {
  const source = `
    const { checkMessage } = await import(${JSON.stringify(new URL("../../src/rpc/connect/library-handler.js", import.meta.url).href)});
    const { ChainService } = await import(${JSON.stringify(new URL("../../gen/gatehouse/chain/v1/chain_pb.js", import.meta.url).href)});
    const { parentPort } = await import("node:worker_threads");
    const text = JSON.stringify({ transaction: { body: "A".repeat(4_000_000) } });
    parentPort.postMessage(checkMessage(ChainService.method.submitTransaction, "json", Buffer.from(text)).length);
  `;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`), {
    resourceLimits: { maxOldGenerationSizeMb: 64 },
  });
  t.teardown(() => worker.terminate());
  const [length] = (await once(worker, "message")) as [number];
  t.is(length, '{"transaction":{"body":""}}'.length + 4_000_000);
});
