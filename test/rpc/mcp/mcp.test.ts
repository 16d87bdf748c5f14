/** MCP tools and resources, with the official client. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { UriTemplate } from "@modelcontextprotocol/sdk/shared/uriTemplate.js";
import test from "ava";
import { startMember, type TestNode } from "../../helpers/nodes/start-node.js";
import { endpointOf, networkOf, startMemberOf } from "../../helpers/nodes/network.js";
import { testKey } from "../../helpers/chain/keys.js";
import { ask, askJson } from "../../helpers/wire/plain-client.js";
import type { Teardown } from "../../helpers/nodes/teardown.js";
import { storeProgram } from "../../helpers/chain/submit.js";
import { until } from "../../helpers/nodes/until.js";

const flags = { "mcp-enabled": true, "mcp-port": "0" };

async function connect(t: Teardown, node: TestNode): Promise<Client> {
  const { ports } = await askJson<{ ports: { mcp: { actual: number } } }>(node.port, "/health");
  const client = new Client({ name: "test", version: "0" });
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${ports.mcp.actual}/mcp`)) as Parameters<
      Client["connect"]
    >[0],
  );
  t.teardown(() => client.close());
  return client;
}

const textOf = (result: unknown): string => (result as { content: { text: string }[] }).content[0]!.text;

test("offers read rpcs as documented tools that respond as plain HTTP does", async (t) => {
  const node = await startMember(t, flags);
  t.deepEqual(await askJson(node.port, "/mcp"), { enabled: true, transport: "streamable-http", status: "running" });
  const client = await connect(t, node);
  const { tools } = await client.listTools();
  const names = tools.map(({ name }) => name);
  t.true(names.includes("storage_searchPrograms") && names.includes("health_getHealth"));
  t.false(names.some((name) => /submit|verify|handshake|addPeer/i.test(name)));
  const search = tools.find(({ name }) => name === "storage_searchPrograms")!;
  t.regex(search.description ?? "", /\w{5}/);
  t.deepEqual(Object.keys(search.inputSchema.properties ?? {}), ["q", "exact", "limit", "offset", "pageToken"]);
  t.is(textOf(await client.callTool({ name: "info_getVersion", arguments: {} })), '"0.2.0"');
  const found = await client.callTool({ name: "storage_searchPrograms", arguments: { q: "nothing" } });
  t.deepEqual(JSON.parse(textOf(found)), await askJson(node.port, "/storage-program/search?q=nothing"));
  const rejected = await client.callTool({ name: "storage_getProgram", arguments: { storageAddress: "x" } });
  t.true(rejected.isError);
  t.regex(textOf(rejected), /^INVALID_REQUEST: /);
  await t.throwsAsync(client.callTool({ name: "chain_submitTransaction", arguments: {} }), {
    message: /There is no tool/,
  });
  await t.throwsAsync(client.callTool({ name: "__proto__", arguments: {} }), { message: /There is no tool/ });
});

test("offers health, node and genesis as resources", async (t) => {
  const node = await startMember(t, flags);
  const client = await connect(t, node);
  const { resources } = await client.listResources();
  t.deepEqual(
    resources.map(({ uri }) => uri),
    ["gatehouse://health/getHealth", "gatehouse://info/getInfo", "gatehouse://info/getGenesis"],
  );
  const { contents } = await client.readResource({ uri: "gatehouse://info/getGenesis" });
  t.is((contents[0] as { text: string }).text, (await ask(node.port, "/genesis")).text);
  await t.throwsAsync(client.readResource({ uri: "gatehouse://info/moon" }), { message: /no such resource/ });
});

test("offers rpcs with required parameters as resource templates that read as plain HTTP does", async (t) => {
  const node = await startMember(t, flags);
  const { address } = await storeProgram(t, node, "a/b ключ?", '{"a/b":[1.0,"two"],"":3}');
  const client = await connect(t, node);
  const { resourceTemplates } = await client.listResourceTemplates();
  const templates = new Map(resourceTemplates.map(({ name, uriTemplate }) => [name, uriTemplate]));
  t.is(templates.get("storage.getProgram"), "gatehouse://storage/getProgram/{storageAddress}");
  t.is(
    templates.get("storage.getFieldItem"),
    "gatehouse://storage/getFieldItem/{storageAddress}/{field}/{index}{?fromEnd,withLength}",
  );
  t.is(
    templates.get("storage.searchPrograms"),
    "gatehouse://storage/searchPrograms/{q}{?exact,limit,offset,pageToken}",
  );
  t.is(templates.get("chain.getBlock"), "gatehouse://chain/getBlock/{number}");
  t.false(templates.has("info.getInfo") || templates.has("chain.submitTransaction"));
  t.true(resourceTemplates.every(({ description = "" }) => description.length > 5));

  const expand = (name: string, variables: Record<string, string>) =>
    new UriTemplate(templates.get(name)!).expand(variables);
  const text = async (uri: string) => ((await client.readResource({ uri })).contents[0] as { text: string }).text;
  const plain = async (path: string) => (await ask(node.port, path)).text;
  const storageAddress = address;
  for (const [uri, path] of [
    [expand("storage.getProgram", { storageAddress }), `/storage-program/${address}`],
    [expand("storage.getField", { storageAddress, field: "a/b" }), `/storage-program/${address}/field/a%2Fb`],
    [expand("storage.getField", { storageAddress, field: "" }), `/storage-program/${address}/field/`],
    [
      expand("storage.getFieldItem", { storageAddress, field: "a/b", index: "1" }),
      `/storage-program/${address}/field/a%2Fb/item/1`,
    ],
    [
      expand("storage.searchPrograms", { q: "B ключ?", exact: "false", limit: "1" }),
      `/storage-program/search?q=${encodeURIComponent("B ключ?")}&limit=1`,
    ],
    ["gatehouse://storage/searchPrograms/b", "/storage-program/search?q=b"],
    [expand("chain.getBlock", { number: "1" }), "/chain/blocks/1"],
  ] as const) {
    t.is(await text(uri), await plain(path), uri);
  }

  const unknown = `stor-${"0".repeat(40)}`;
  for (const [uri, code, message] of [
    [`gatehouse://storage/getProgram/${unknown}`, -32002, /no program|not exist|There is no/i],
    ["gatehouse://storage/getProgram/x", -32602, /address/i],
    ["gatehouse://chain/getBlock/first", -32602, /number must be a whole number/],
    ["gatehouse://chain/getBlock", -32002, /no such resource/],
    ["gatehouse://chain/getBlock/1/2", -32002, /no such resource/],
    ["gatehouse://chain/submitTransaction/x", -32002, /no such resource/],
    ["gatehouse://chain/getHead", -32002, /no such resource/],
    ["gatehouse://storage/getProgram/%zz", -32002, /no such resource/],
    ["http://storage/getProgram/x", -32002, /no such resource/],
    ["gatehouse://__proto__/constructor/x", -32002, /no such resource/],
  ] as const) {
    const error = await t.throwsAsync(client.readResource({ uri }), { message }, uri);
    t.is((error as Error & { code: number }).code, code, uri);
  }
});

test("marks required arguments, and names missing or invalid ones as callers write them", async (t) => {
  const node = await startMember(t, flags);
  const client = await connect(t, node);
  const tools = new Map((await client.listTools()).tools.map((tool) => [tool.name, tool]));
  const required = (name: string) => tools.get(name)!.inputSchema.required;
  t.deepEqual(required("storage_getFieldItem"), ["storageAddress", "field", "index"]);
  t.deepEqual(required("storage_searchPrograms"), ["q"]);
  t.deepEqual(required("zk_getMerkleProof"), ["commitment"]);
  t.deepEqual(required("health_getReadiness"), []);
  for (const [name, args, sentence] of [
    ["storage_getProgram", {}, "INVALID_REQUEST: storageAddress is required."],
    ["storage_getProgram", { storageAddress: null }, "INVALID_REQUEST: storageAddress is required."],
    ["storage_getProgram", { storageAddress: 1 }, /^INVALID_REQUEST: storageAddress must be /],
    ["storage_hasField", { storageAddress: "x" }, "INVALID_REQUEST: field is required."],
    ["zk_getNullifier", { nullifierHash: {} }, /^INVALID_REQUEST: nullifierHash must be /],
    ["storage_searchPrograms", { q: [] }, /^INVALID_REQUEST: q must be /],
  ] as const) {
    const result = await client.callTool({ name, arguments: args });
    t.true(result.isError);
    if (typeof sentence === "string") {
      t.is(textOf(result), sentence);
    } else {
      t.regex(textOf(result), sentence);
    }
  }
});

test("declares exactly the capabilities that a session has", async (t) => {
  const client = await connect(t, await startMember(t, flags));
  t.deepEqual(client.getServerCapabilities(), { tools: {}, resources: {} });
  await t.throwsAsync(client.listPrompts(), { message: /Method not found/ });
});

test("rejects pages of other sites, other paths and other methods", async (t) => {
  const node = await startMember(t, flags);
  const port = (await askJson<{ ports: { mcp: { actual: number } } }>(node.port, "/health")).ports.mcp.actual;
  const body = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
  const headers = { "Content-Type": "application/json", Accept: "application/json, text/event-stream" };
  const post = (more: Record<string, string>, path = "/mcp") =>
    ask(port, path, { method: "POST", body, headers: { ...headers, ...more } });
  t.is((await post({ Origin: "https://evil.example" })).status, 403);
  t.is((await post({ Origin: "null" })).status, 403);
  t.is((await post({ Origin: "http://localhost.evil.example" })).status, 403);
  t.is((await post({ Origin: "http://localhost:3000" })).status, 200);
  t.is((await post({})).status, 200);
  t.is((await post({}, "/")).status, 404);
  t.is((await ask(port, "/mcp")).status, 405);
  t.is((await ask(port, "/mcp", { method: "POST", body: "{", headers })).status, 400);
  t.is((await ask(port, "/mcp", { method: "POST", body: "[".repeat(1_000_000), headers })).status, 400);
});

test("serves no tools while dormant, and by default", async (t) => {
  const { genesis } = networkOf(testKey(1));
  const sleeper = await startMemberOf(t, { key: testKey(1), genesis, flags });
  t.like(await askJson(sleeper.port, "/mcp"), { enabled: true, status: "stopped" });
  await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(sleeper)] });
  await until(async () => (await askJson<{ status: string }>(sleeper.port, "/mcp")).status === "running");
  const client = await connect(t, sleeper);
  t.is(textOf(await client.callTool({ name: "info_getVersion", arguments: {} })), '"0.2.0"');
  t.like(await askJson((await startMember(t)).port, "/mcp"), { enabled: false, status: "stopped" });
});
