/** Requests that lenient decoders read as other requests: base64, numbers, UTF-8, and members of one name. */
import test from "ava";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { writeEnvelope } from "../../src/rpc/exchange/rpc-requests.js";
import { storeProgram } from "../helpers/chain/submit.js";
import { startMember, type TestNode } from "../helpers/nodes/start-node.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { fileTeardown } from "../helpers/nodes/teardown.js";
import { ask, askJson, jsonPost } from "../helpers/wire/plain-client.js";
import { connectTransport } from "../helpers/wire/transports.js";

const edges = ["compiled", "express"] as const;
type Edge = (typeof edges)[number];
let nodes: Readonly<Record<Edge, TestNode>>;
let address = "";
let mcpPort = 0;

const fileScope: Teardown = fileTeardown();
test.before(async () => {
  const start = async (edge: Edge): Promise<TestNode> =>
    await startMember(fileScope, { edge, "mcp-enabled": true, "mcp-port": "0" });
  nodes = { compiled: await start("compiled"), express: await start("express") };
  // A lenient decoder reads the second field for the bytes of "café" in ISO 8859-1.
  const document = '{"caf\u00e9":1,"caf\ufffd":2,"list":["first","last"]}';
  await storeProgram(fileScope, nodes.express, "notes", document);
  ({ address } = await storeProgram(fileScope, nodes.compiled, "notes", document));
  const { ports } = await askJson<{ ports: { mcp: { actual: number } } }>(nodes.compiled.port, "/health");
  mcpPort = ports.mcp.actual;
});

const chain = "/gatehouse.chain.v1.ChainService";
const getBlock = `${chain}/GetBlock`;
const search = "/gatehouse.storage.v1.StorageService/SearchPrograms";
const getField = "/gatehouse.storage.v1.StorageService/GetField";
const latest = "18446744073709551615";

const rpc = (method: string, params: string, id = "1"): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`;
const bytes = (text: string): Buffer => Buffer.from(text, "latin1");
const callTool = (name: string, args: string, id = "1"): string =>
  rpc("tools/call", `{"name":"${name}","arguments":${args}}`, id);
const askMcp = async (body: string | Buffer, headers: Record<string, string> = {}, path = "/mcp") =>
  await ask(mcpPort, path, jsonPost(body, headers));

/** Sends JSON text as the message of an rpc in each JSON protocol, and returns the response texts. */
async function askEach(
  method: string,
  path: string,
  tool: string,
  json: string | Buffer,
): Promise<Record<string, string>> {
  const body = Buffer.from(json);
  const around = (text: string): Buffer => {
    const [before, after] = text.split("$") as [string, string];
    return Buffer.concat([Buffer.from(before), body, Buffer.from(after)]);
  };
  const { port } = nodes.compiled;
  const gzip = { "Content-Encoding": "gzip" };
  const br = { "Content-Encoding": "br" };
  const base64 = encodeURIComponent(body.toString("base64"));
  const answers = {
    "JSON-RPC": await ask(port, "/", jsonPost(around(rpc(method, "$")))),
    Connect: await ask(port, path, jsonPost(body)),
    "Connect, compressed": await ask(port, path, jsonPost(gzipSync(body), gzip)),
    "Connect by GET": await ask(port, `${path}?encoding=json&base64=1&message=${base64}`),
    "Connect by GET, compressed": await ask(
      port,
      `${path}?encoding=json&compression=br&base64=1&message=${brotliCompressSync(body).toString("base64url")}`,
    ),
    "Connect, Express": await ask(nodes.express.port, path, jsonPost(body)),
    "Connect, Express, compressed": await ask(nodes.express.port, path, jsonPost(brotliCompressSync(body), br)),
    "gRPC-Web JSON": await askWeb(path, body),
    "gRPC-Web JSON, compressed": await askWeb(path, gzipSync(body), 1),
    MCP: await askMcp(around(callTool(tool, "$"))),
  };
  return Object.fromEntries(
    Object.entries(answers).map(([name, { text, headers }]) => [
      name,
      `${text}${decodeURIComponent(String(headers["grpc-message"] ?? ""))}`,
    ]),
  );
}

async function askWeb(path: string, message: Buffer, flags = 0) {
  const headers = {
    "Content-Type": "application/grpc-web+json",
    "grpc-encoding": "gzip",
    "grpc-accept-encoding": "identity",
  };
  return await ask(nodes.compiled.port, path, { method: "POST", headers, body: writeEnvelope(flags, message) });
}

test("reads 18446744073709551615 as the latest block in every protocol, as a number and as text", async (t) => {
  const { number } = await askJson<{ number: number }>(nodes.compiled.port, "/chain/head");
  for (const value of [latest, `"${latest}"`, "1.8446744073709551615e19", '"latest"']) {
    const answers = await askEach("chain.getBlock", getBlock, "chain_getBlock", `{"number":${value}}`);
    for (const [protocol, text] of Object.entries(answers)) {
      t.regex(text, new RegExp(`number\\\\?":\\\\?"?${number}\\b`), `${protocol}: ${value}`);
    }
  }
  for (const path of [`/chain/blocks/${latest}`, `/chain/transactions?blockNumber=${latest}`]) {
    t.is((await ask(nodes.compiled.port, path)).status, 200, path);
  }
});

test("reads whole numbers as ProtoJSON defines them, and changes none", async (t) => {
  for (const value of ["1", '"1"', "1.0", "1e0", '"1e0"', "10e-1"]) {
    const answers = await askEach("chain.getBlock", getBlock, "chain_getBlock", `{"number":${value}}`);
    for (const [protocol, text] of Object.entries(answers)) {
      t.regex(text, /number\\?":\\?"?1\b/, `${protocol}: ${value}`);
    }
  }
  const range = "number must be a whole number from 0 to 18446744073709551615, or latest, not ";
  for (const value of [
    '"0x1"',
    '" 1"',
    '"1 "',
    '"01"',
    '"+1"',
    '""',
    "1.5",
    "-1",
    "18446744073709551616",
    "1e400",
    "true",
  ]) {
    const answers = await askEach("chain.getBlock", getBlock, "chain_getBlock", `{"number":${value}}`);
    for (const [protocol, text] of Object.entries(answers)) {
      const shown = value.replace(/^"|"$/g, "");
      t.true(text.replaceAll("\\", "").includes(`${range}"${shown}"`), `${protocol}: ${value}: ${text}`);
    }
  }
});

test("reads numbers of the node-call interface exactly", async (t) => {
  const call = async (message: string, data: string) => {
    const body = `{"method":"nodeCall","params":[{"message":"${message}","data":${data}}]}`;
    return (await ask(nodes.compiled.port, "/", jsonPost(body))).text;
  };
  for (const start of [latest, "1.0", "1e0", "1", '"latest"']) {
    t.regex(
      await call("getBlocks", `{"start":${start},"limit":1.0}`),
      /^\{"result":200,"response":\[\{"number":1,/,
      start,
    );
  }
  t.regex(await call("getBlockByNumber", `{"blockNumber":${latest}}`), /"response":\{"number":1,/);
  for (const index of ["-1.0", "-1", "1.0", '"1"']) {
    const item = await call("getStorageProgramItem", `{"storageAddress":"${address}","field":"list","index":${index}}`);
    t.regex(item, /"value":"last"/, index);
  }
});

test("rejects JSON that is not UTF-8 in every protocol", async (t) => {
  const json = Buffer.concat([Buffer.from(`{"storageAddress":"${address}","field":"caf`), bytes('\xe9"}')]);
  const answers = await askEach("storage.getField", getField, "storage_getField", json);
  for (const [protocol, text] of Object.entries(answers)) {
    t.true(text.includes("The request body is not UTF-8 text."), `${protocol}: ${text}`);
  }
  const plain = await ask(nodes.compiled.port, "/chain/transactions", { method: "POST", body: bytes('{"a":"\xe9"}') });
  t.is(plain.status, 400);
  t.regex(plain.text, /is not UTF-8/);
  const message = encodeURIComponent(`{"storageAddress":"${address}","field":"caf$"}`).replace("%24", "%E9");
  const get = await ask(nodes.compiled.port, `${getField}?encoding=json&message=${message}`);
  t.is(get.status, 400);
});

test("rejects JSON of streams that is not UTF-8 or has two members of one name", async (t) => {
  const client = connectTransport("HTTP/2 by prior knowledge", nodes.compiled);
  t.teardown(() => client.close());
  for (const [path, valid] of [
    ["/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", '{"fileByFilename":"x"}'],
    ["/gatehouse.event.v1.EventService/Watch", '{"from":"x"}'],
  ] as const) {
    for (const [flags, pack] of [
      [0, (body: Buffer) => body],
      [1, gzipSync],
    ] as const) {
      const send = async (...messages: readonly Buffer[]) =>
        await client.ask(path, {
          method: "POST",
          headers: { "Content-Type": "application/connect+json", "Connect-Content-Encoding": "gzip" },
          body: Buffer.concat(messages.map((message) => writeEnvelope(flags, pack(message)))),
        });
      t.regex((await send(Buffer.from(valid))).text, /no symbol or file x|from must be/, path);
      for (const invalid of [
        bytes(valid.replace("x", "\xe9")),
        Buffer.from(valid.replace("}", `,${valid.slice(1)}`)),
      ]) {
        const { text } = await send(invalid);
        t.regex(text, /"code":"invalid_argument","message":"The request body (is not UTF-8|has two members)/, path);
      }
    }
  }
});

test("rejects two members of one name in every protocol", async (t) => {
  for (const json of ['{"q":"x","q":"y"}', '{"q":"x","more":{"a":1,"\\u0061":2}}']) {
    const answers = await askEach("storage.searchPrograms", search, "storage_searchPrograms", json);
    for (const [protocol, text] of Object.entries(answers)) {
      t.true(text.includes("The request body has two members with the name"), `${protocol}: ${text}`);
    }
  }
  const { port } = nodes.compiled;
  for (const body of [
    '{"jsonrpc":"2.0","id":1,"id":2,"method":"info.getVersion"}',
    '{"method":"ping","method":"nodeCall","params":[]}',
    '{"method":"nodeCall","params":[{"message":"getLastBlockNumber","data":{},"data":{}}]}',
  ]) {
    t.regex((await ask(port, "/", jsonPost(body))).text, /"code":-32700,.*two members/, body);
  }
  t.is((await ask(port, "/chain/transactions", jsonPost('{"transaction":{},"transaction":{}}'))).status, 400);
});

test("reads the number in Gatehouse-Min-Block in one spelling", async (t) => {
  for (const [value, status] of [
    ["1", 200],
    ["0", 200],
    ["01", 400],
    ["-1", 400],
    ["+1", 400],
    ["0x1", 400],
    ["1e0", 400],
    ["", 400],
  ] as const) {
    const { status: got } = await ask(nodes.compiled.port, "/chain/blocks", {
      headers: { "Gatehouse-Min-Block": value },
    });
    t.is(got, status, value);
  }
});

for (const edge of edges) {
  test(`reads base64 of a call by GET strictly, with the edge ${edge}`, async (t) => {
    const { port } = nodes[edge];
    const get = async (message: string, encoding = "proto") =>
      await ask(port, `${getBlock}?encoding=${encoding}&base64=1&message=${message}`);
    // Block 16911 does not exist. Without the plus the bytes would be those of block 1.
    for (const message of ["CI%2BEAQ==", "CI%2BEAQ%3D%3D", "CI%2BEAQ", "CI-EAQ", "CI-EAQ%3D%3D"]) {
      const { status, text } = await get(message);
      t.is(status, 404, `${message}: ${text}`);
    }
    for (const message of ["CI+EAQ==", "!!!", "CAE=CAE=", "CAE%0A", "CAE==", "C", "CAF", "%zz", "CAE&message=CAI"]) {
      const { status, text } = await get(message);
      t.is(status, 400, `${message}: ${text}`);
      t.regex(text, /INVALID_REQUEST/);
    }
    t.is((await get("CAE")).status, 200);
    t.is((await get("CAE%3D")).status, 200);
    t.is((await ask(port, `${getBlock}?encoding=json&encoding=proto&message=`)).status, 400);
  });

  test(`rejects a body of gRPC-Web text that is no base64, with the edge ${edge}`, async (t) => {
    const { port } = nodes[edge];
    const frame = writeEnvelope(0, Buffer.from([8, 1])).toString("base64");
    const inPieces = [Buffer.alloc(4), Buffer.from([2, 8, 1])].map((piece) => piece.toString("base64")).join("");
    const send = async (body: string) =>
      await ask(port, getBlock, { method: "POST", headers: { "Content-Type": "application/grpc-web-text" }, body });
    t.regex((await send(frame)).text, /^AAAA/);
    t.regex((await send(inPieces)).text, /^AAAA/);
    for (const body of [`!!!!${frame}`, `${frame}!!!!`, `====${frame}`, frame.slice(0, -1), `\n${frame}`]) {
      const { headers, text } = await send(body);
      t.is(headers["grpc-status"], "3", `${JSON.stringify(body)}: ${text}`);
    }
  });
}

test("returns ids of JSON-RPC exactly as they were sent, alone, in batches and in MCP", async (t) => {
  const { port } = nodes.compiled;
  const ids = [
    "9007199254740993",
    "1e400",
    "1.5",
    "1.0",
    "-0",
    "18446744073709551615",
    '"a"',
    '""',
    "0",
    `1${"0".repeat(400)}`,
  ];
  for (const id of ids) {
    const version = '"0.2.0"';
    t.is(
      (await ask(port, "/", jsonPost(rpc("info.getVersion", "{}", id)))).text,
      `{"jsonrpc":"2.0","id":${id},"result":${version}}`,
    );
    t.true(
      (await ask(port, "/", jsonPost(rpc("info.moon", "{}", id)))).text.startsWith(
        `{"jsonrpc":"2.0","id":${id},"error"`,
      ),
    );
    t.true((await ask(port, "/", jsonPost(`{"jsonrpc":"2.0","id":${id}}`))).text.includes(`"id":${id},`));
    t.true((await askMcp(callTool("info_getVersion", "{}", id))).text.endsWith(`,"jsonrpc":"2.0","id":${id}}`), id);
    t.true((await askMcp(rpc("moon", "{}", id))).text.includes(`"id":${id}`), id);
  }
  const batch = `[${ids.map((id) => rpc("info.getVersion", "{}", id)).join(",")}]`;
  const answers = (await ask(port, "/", jsonPost(batch))).text;
  t.is(answers, `[${ids.map((id) => `{"jsonrpc":"2.0","id":${id},"result":"0.2.0"}`).join(",")}]`);
  t.is(
    (await askMcp(`[${ids.map((id) => rpc("ping", "{}", id)).join(",")}]`)).text.split('"id":').length,
    ids.length + 1,
  );
});

test("MCP accepts each Accept header, a slash at the end of the path, and null as absent arguments", async (t) => {
  const version = '"text":"\\"0.2.0\\""';
  for (const accept of ["*/*", "application/json", "application/json, text/event-stream", ""]) {
    const headers: Record<string, string> = accept === "" ? {} : { Accept: accept };
    const { status, text, headers: sent } = await askMcp(callTool("info_getVersion", "{}"), headers);
    t.is(status, 200, accept);
    t.true(text.includes(version), text);
    t.is(sent["content-type"], "application/json");
    t.is(sent["access-control-allow-origin"], undefined);
  }
  t.is((await askMcp(callTool("info_getVersion", "{}"), {}, "/mcp/")).status, 200);
  t.is((await askMcp(callTool("info_getVersion", "{}"), {}, "/mcp/?a=1")).status, 200);
  t.is((await askMcp(callTool("info_getVersion", "{}"), {}, "/mcp/x")).status, 404);
  t.true((await askMcp(callTool("info_getVersion", "null"))).text.includes(version));
  t.true((await askMcp(rpc("tools/call", '{"name":"info_getVersion"}'))).text.includes(version));
  t.true((await askMcp(rpc("tools/list", "null"))).status >= 200);
});

test("MCP rejects messages that are none, and responds to notifications without a body", async (t) => {
  for (const [body, status] of [
    ["7", 400],
    ["[]", 400],
    [`[${Array(101).fill(rpc("ping", "{}")).join(",")}]`, 400],
    [rpc("ping", "{}", "null"), 400],
    [rpc("ping", "{}", "{}"), 400],
    [rpc("ping", "[1]"), 400],
    ['{"jsonrpc":"2.0","method":"notifications/initialized"}', 202],
    ['{"jsonrpc":"2.0","id":1,"result":{}}', 202],
  ] as const) {
    const response = await askMcp(body);
    t.is(response.status, status, `${body}: ${response.text}`);
  }
  t.is((await askMcp(rpc("ping", "{}"), { "MCP-Protocol-Version": "1.0" })).status, 400);
  t.is((await askMcp(rpc("ping", "{}"), { "MCP-Protocol-Version": "2025-06-18" })).status, 200);
  t.is(
    (await ask(mcpPort, "/mcp", { method: "POST", body: rpc("ping", "{}"), headers: { "Content-Type": "text/plain" } }))
      .status,
    415,
  );
  const cancelled = `[${rpc("ping", "{}", "7")},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}]`;
  t.is((await askMcp(cancelled)).text, '[{"result":{},"jsonrpc":"2.0","id":7}]');
});

test("rejects a batch over the limit with an error for each id", async (t) => {
  const { port } = nodes.compiled;
  const requests = Array.from({ length: 1_000 }, (_, id) => ({ jsonrpc: "2.0", id, method: "info.getVersion" }));
  const { text } = await ask(port, "/", jsonPost([...requests, { jsonrpc: "2.0", method: "info.getVersion" }]));
  const answers = JSON.parse(text) as { id: number; error: { code: number; message: string; data: object } }[];
  t.deepEqual(
    answers.map(({ id }) => id),
    requests.map(({ id }) => id),
  );
  for (const { error } of answers) {
    const message = "A batch must have 1 to 100 requests, not 1001; send them in several batches.";
    t.deepEqual(error, { code: -32600, message, data: { reason: "INVALID_REQUEST" } });
  }
  const many = JSON.stringify(Array(9_000).fill({ id: 1 }));
  t.is((JSON.parse((await ask(port, "/", jsonPost(many))).text) as object[]).length, 9_000);
  const notifications = JSON.stringify(Array(101).fill({ jsonrpc: "2.0", method: "info.getVersion" }));
  t.like(JSON.parse((await ask(port, "/", jsonPost(notifications))).text), { id: null, error: { code: -32600 } });
});
