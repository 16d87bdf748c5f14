/** An rpc that is added to a proto file is served by every protocol without further changes. */
import { Client as McpClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import test from "ava";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { AddedService } from "../../gen/gatehouse/testing/v1/added_pb.js";
import { createEdge } from "../../src/edge/edge.js";
import { createMetrics } from "../../src/metrics/metrics.js";
import { nodeMetrics } from "../../src/metrics/table.js";
import type { MeasuredRequest } from "../../src/metrics/row.js";
import { createMcpPort } from "../../src/rpc/server/rpc-server.js";
import { reflectionServices } from "../../src/rpc/describe/reflection.js";
import { serve } from "../../src/rpc/service.js";
import { openSettings, startServices } from "../helpers/nodes/edge-server.js";
import { ask, askJson, jsonPost } from "../helpers/wire/plain-client.js";
import { parseMetrics } from "../helpers/process/prometheus.js";
import { likeLists } from "../helpers/like-lists.js";

/** A stream of one message. */
async function* only<T>(message: T): AsyncIterable<T> {
  yield await Promise.resolve(message);
}

test("serves an added rpc over HTTP, gRPC, Connect, gRPC-Web, JSON-RPC, OpenAPI, OpenRPC, reflection, MCP and metrics", async (t) => {
  const added = serve(AddedService, {
    getThing: ({ name }) => ({ name, count: 3n }),
    async *watchThings({ name }) {
      yield await Promise.resolve({ what: { case: "thingSeen" as const, value: { name, count: 3n } } });
    },
  });
  const services = [added, ...reflectionServices([added.desc])];
  const perRequest = nodeMetrics.filter((row) => "perRequest" in row);
  const metrics = createMetrics(
    perRequest,
    () => Promise.resolve({}),
    () => undefined,
  );
  const edge = createEdge({
    ...openSettings,
    onFinished: (request: MeasuredRequest) => metrics.count(request),
  });
  const info = { title: "test", version: "0" };
  const onInternalError = (error: unknown): void => t.fail(String(error));
  const { port } = await startServices(t, services, edge, { onInternalError });
  const tools = await createMcpPort({ services, gate: edge, onInternalError, info, resources: {} });
  t.teardown(() => tools.drain(0));
  const mcpPort = await tools.listen({ host: "127.0.0.1", port: 0 });
  const thing = { name: "a/b", count: 3 };

  t.deepEqual(await askJson(port, "/testing/things/a%2Fb"), thing);
  t.is(
    (await ask(port, "/testing/watch/a")).text,
    'event: thingSeen\ndata: {"place":"","thingSeen":{"name":"a","count":3}}\n\n',
  );
  const baseUrl = `http://127.0.0.1:${port}`;
  for (const transport of [
    createGrpcTransport({ baseUrl }),
    createConnectTransport({ baseUrl, httpVersion: "1.1" }),
    createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
  ]) {
    t.is((await createClient(AddedService, transport).getThing({ name: "a" })).count, 3n);
  }
  const call = async (method: string, params?: object): Promise<unknown> => {
    const { text } = await ask(port, "/", jsonPost({ jsonrpc: "2.0", id: 1, method, params }));
    return (JSON.parse(text) as { result: unknown }).result;
  };
  t.deepEqual(await call("testing.getThing", { name: "a/b" }), thing);
  t.deepEqual(await call("testing.getThing", ["a/b"]), thing);
  likeLists(t, await call("rpc.discover"), { methods: [{ name: "testing.getThing", params: [{ name: "name" }] }] });
  const { paths } = await askJson<{ paths: Record<string, object> }>(port, "/openapi.json");
  likeLists(t, paths["/testing/things/{name}"], {
    get: { operationId: "testing.getThing", parameters: [{ name: "name", in: "path" }] },
  });

  const reflection = createClient(ServerReflection, createGrpcTransport({ baseUrl }));
  const asked = { case: "fileContainingSymbol" as const, value: "gatehouse.testing.v1.AddedService" };
  for await (const { messageResponse } of reflection.serverReflectionInfo(only({ messageRequest: asked }))) {
    t.is(messageResponse.case, "fileDescriptorResponse");
  }

  const client = new McpClient({ name: "test", version: "0" });
  t.teardown(() => client.close());
  const transport = new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${mcpPort}/mcp`));
  await client.connect(transport as Parameters<McpClient["connect"]>[0]);
  t.deepEqual(
    (await client.listTools()).tools.map(({ name }) => name),
    ["testing_getThing"],
  );
  const answered = (await client.callTool({ name: "testing_getThing", arguments: { name: "a/b" } })) as {
    content: { text: string }[];
  };
  t.deepEqual(JSON.parse(answered.content[0]!.text), thing);

  const read = parseMetrics(await metrics.text());
  const rpc = "gatehouse.testing.v1.AddedService/GetThing";
  for (const [protocol, count] of Object.entries({
    http: 1,
    connect: 1,
    "grpc-web": 1,
    grpc: 1,
    "json-rpc": 2,
    mcp: 1,
  })) {
    t.is(read.value("gatehouse_requests_total", { protocol, rpc, code: "OK" }), count, protocol);
  }
});
