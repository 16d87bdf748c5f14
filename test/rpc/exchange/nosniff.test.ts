/** Responses with a body, of every protocol and port: each forbids browsers to guess another content type. */
import test from "ava";
import { connectTransport, type TransportName } from "../../helpers/wire/transports.js";
import { ask, askJson, jsonPost, type PlainRequest } from "../../helpers/wire/plain-client.js";
import { sharedTestNode, startMember } from "../../helpers/nodes/start-node.js";

const flags = { "metrics-enabled": true, "metrics-port": "0", "mcp-enabled": true, "mcp-port": "0" };
const nodes = { compiled: sharedTestNode({}), express: sharedTestNode({ edge: "express" }) };

const frame = Buffer.from([0, 0, 0, 0, 0]);
const rpc = (contentType: string, body: string | Buffer, more = {}): PlainRequest => ({
  method: "POST",
  body: body as string,
  headers: { "content-type": contentType, ...more },
});
const health = "/gatehouse.health.v1.HealthService/GetHealth";
const watch = "/gatehouse.health.v1.HealthService/WatchHealth";
/** Requests by name: responses and errors, unary and streams, compressed or not, and pages. */
const requests: Readonly<Record<string, readonly [contentType: string, path: string, request?: PlainRequest]>> = {
  "plain JSON": ["application/json", "/health"],
  "plain error": ["application/json", "/chain/blocks/nope"],
  "unknown path": ["application/json", "/nope"],
  "wrong method": ["application/json", "/health", { method: "DELETE" }],
  "stream of events": ["text/event-stream", "/health/watch"],
  "stream of lines": ["application/jsonl", "/health/watch", { headers: { accept: "application/x-ndjson" } }],
  "JSON-RPC": ["application/json", "/", jsonPost({ jsonrpc: "2.0", id: 1, method: "health.getHealth" })],
  "JSON-RPC error": ["application/json", "/", jsonPost({ jsonrpc: "2.0", id: 1, method: "nope" })],
  "node call": ["application/json", "/", jsonPost({ method: "nodeCall", params: [{ message: "getPeerlist" }] })],
  Connect: ["application/json", health, rpc("application/json", "{}")],
  "Connect GET": ["application/json", `${health}?encoding=json&message=%7B%7D&connect=v1`],
  "Connect error": ["application/json", health, rpc("application/json", "[]")],
  "Connect stream": [
    "application/connect+json",
    watch,
    rpc("application/connect+json", Buffer.concat([Buffer.from([0, 0, 0, 0, 2]), Buffer.from("{}")])),
  ],
  "gRPC-Web": ["application/grpc-web+proto", health, rpc("application/grpc-web+proto", frame)],
  "gRPC-Web stream": ["application/grpc-web+proto", watch, rpc("application/grpc-web+proto", frame)],
  "gRPC-Web text": [
    "application/grpc-web-text+proto",
    health,
    rpc("application/grpc-web-text+proto", frame.toString("base64")),
  ],
  page: ["text/html", "/explore"],
  "HTML of the latest": ["text/html", "/latest"],
  "status page": ["text/html", "/status"],
  "API document": ["application/json", "/openapi.json"],
};
const overHttp2: typeof requests = {
  ...requests,
  gRPC: ["application/grpc+proto", health, rpc("application/grpc+proto", frame, { te: "trailers" })],
  "gRPC stream": ["application/grpc+proto", watch, rpc("application/grpc+proto", frame, { te: "trailers" })],
  "gRPC error": [
    "application/grpc+proto",
    "/gatehouse.health.v1.HealthService/Nope",
    rpc("application/grpc+proto", frame, { te: "trailers" }),
  ],
};

const transports: readonly (readonly [TransportName, typeof requests])[] = [
  ["HTTP/1.1", requests],
  ["HTTP/2 by prior knowledge", overHttp2],
];
for (const [edge, node] of Object.entries(nodes)) {
  for (const [name, sent] of transports) {
    test(`${edge} edge, ${name}: every response has nosniff`, async (t) => {
      const client = connectTransport(name, node);
      t.teardown(() => client.close());
      for (const [what, [contentType, path, request]] of Object.entries(sent)) {
        const ended = new AbortController();
        const { headers, status } = await client.open(path, request, ended.signal);
        t.is(headers["x-content-type-options"], "nosniff", `${what}: ${status}`);
        t.is(headers["content-type"]?.split(";")[0], contentType, what);
        ended.abort();
      }
    });
  }
}

test("the metrics, the MCP port and requests that are not HTTP have nosniff", async (t) => {
  const { port } = await startMember(t, flags);
  const { ports } = await askJson<{ ports: Record<"metrics" | "mcp", { actual: number }> }>(port, "/health");
  const mcp = jsonPost(
    { jsonrpc: "2.0", id: 1, method: "tools/list" },
    { accept: "application/json, text/event-stream" },
  );
  const responses = [
    await ask(ports.metrics.actual, "/metrics"),
    await ask(ports.metrics.actual, "/nope"),
    await ask(ports.mcp.actual, "/mcp", mcp),
    await ask(ports.mcp.actual, "/mcp", jsonPost([])),
    await ask(port, "/health", { headers: { "x-long": "x".repeat(64 * 1024) } }),
  ];
  for (const { status, headers, text } of responses) {
    t.is(headers["x-content-type-options"], "nosniff", `${status} ${text.slice(0, 100)}`);
  }
  t.deepEqual(responses.map(({ status }) => status).slice(0, 3), [200, 404, 200]);
});
