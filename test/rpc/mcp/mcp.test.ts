/** The tools for assistants, with the protocol's own client. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import test from "ava";
import { startMember } from "../../helpers/start-member.js";
import { endpointOf, networkOf, startMemberOf } from "../../helpers/network.js";
import { testKey } from "../../helpers/keys.js";
import { ask, askJson } from "../../helpers/plain-client.js";
import type { Teardown } from "../../helpers/teardown.js";
import type { TestNode } from "../../helpers/start-node.js";
import { until } from "../../helpers/until.js";

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

test("tools are the rpcs that read, with their documentation, and answer as plain HTTP does", async (t) => {
  const node = await startMember(t, flags);
  t.deepEqual(await askJson(node.port, "/mcp"), { enabled: true, transport: "streamable-http", status: "running" });
  const client = await connect(t, node);
  const { tools } = await client.listTools();
  const names = tools.map(({ name }) => name);
  t.true(names.includes("storage_searchPrograms") && names.includes("health_getHealth"));
  t.false(names.some((name) => /submit|verify|handshake|addPeer/i.test(name)));
  const search = tools.find(({ name }) => name === "storage_searchPrograms")!;
  t.regex(search.description ?? "", /\w{5}/);
  t.deepEqual(Object.keys(search.inputSchema.properties ?? {}), ["q", "exact", "limit", "offset"]);
  t.is(textOf(await client.callTool({ name: "info_getVersion", arguments: {} })), '"0.1.0"');
  const found = await client.callTool({ name: "storage_searchPrograms", arguments: { q: "nothing" } });
  t.deepEqual(JSON.parse(textOf(found)), await askJson(node.port, "/storage-program/search?q=nothing"));
  const refused = await client.callTool({ name: "storage_getProgram", arguments: { storageAddress: "x" } });
  t.true(refused.isError);
  t.regex(textOf(refused), /^INVALID_REQUEST: /);
  await t.throwsAsync(client.callTool({ name: "chain_submitTransaction", arguments: {} }), {
    message: /There is no tool/,
  });
  await t.throwsAsync(client.callTool({ name: "__proto__", arguments: {} }), { message: /There is no tool/ });
});

test("health, node and genesis are resources", async (t) => {
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

test("what a session can do is what it says", async (t) => {
  const client = await connect(t, await startMember(t, flags));
  t.deepEqual(client.getServerCapabilities(), { tools: {}, resources: {} });
  await t.throwsAsync(client.listResourceTemplates(), { message: /Method not found/ });
});

test("pages of other sites, other paths and other methods are turned away", async (t) => {
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

test("a dormant node has no tools, and has them when it wakes; by default there are none", async (t) => {
  const { genesis } = networkOf(testKey(1));
  const sleeper = await startMemberOf(t, { key: testKey(1), genesis, flags });
  t.like(await askJson(sleeper.port, "/mcp"), { enabled: true, status: "stopped" });
  await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(sleeper)] });
  await until(async () => (await askJson<{ status: string }>(sleeper.port, "/mcp")).status === "running");
  const client = await connect(t, sleeper);
  t.is(textOf(await client.callTool({ name: "info_getVersion", arguments: {} })), '"0.1.0"');
  t.like(await askJson((await startMember(t)).port, "/mcp"), { enabled: false, status: "stopped" });
});
