/** Error bodies and headers of plain HTTP, which are the same on every route. */
import test from "ava";
import { connect } from "node:net";
import { ask, jsonPost, type PlainRequest, type PlainResponse } from "../../helpers/wire/plain-client.js";
import { sharedTestNode } from "../../helpers/nodes/start-node.js";

const node = sharedTestNode({ "tlsnotary-enabled": true });

const fails = test.macro({
  async exec(t, path: string, request: PlainRequest, status: number, errorCode: string) {
    const response = await ask(node.port, path, request);
    t.is(response.status, status);
    t.is(response.headers["content-type"], "application/json; charset=utf-8");
    t.truthy(response.headers["x-request-id"]);
    t.is(response.headers["access-control-allow-origin"], "*");
    const body = JSON.parse(response.text) as { success: boolean; error: string; errorCode: string };
    t.deepEqual(Object.keys(body), ["success", "error", "errorCode"]);
    t.like(body, { success: false, errorCode });
    t.regex(body.error, /^.+\.$/);
  },
  title: (_, path: string, request: PlainRequest, status: number) =>
    `${request.method ?? "GET"} ${path.slice(0, 60)} is ${status}${request.headers === undefined ? "" : ` with ${JSON.stringify(request.headers)}`}`,
});

const address = `stor-${"0".repeat(40)}`;
for (const path of [
  "/nope",
  "/Health",
  "/health/x",
  "/health//",
  "/storage-program",
  "/.env",
  "/__proto__",
  "/constructor",
]) {
  test(fails, path, {}, 404, "NOT_FOUND");
}
for (const path of ["/%ZZ", "/%", "/%C3%28", "/storage-program/%E0%80%AF", `/storage-program/${address}/field/%`]) {
  test(fails, path, {}, 400, "INVALID_REQUEST");
}
for (const method of ["POST", "PUT", "DELETE", "PATCH", "PROPFIND"]) {
  test(fails, "/health", { method }, 405, "METHOD_NOT_ALLOWED");
}
test(fails, "/tlsnotary/verify", {}, 405, "METHOD_NOT_ALLOWED");
const tooLarge = { method: "POST", body: Buffer.alloc(2 * 1024 * 1024 + 1, "a") };
const chunked = { ...tooLarge, headers: { "Transfer-Encoding": "chunked" } };
test(fails, "/tlsnotary/verify", tooLarge, 413, "PAYLOAD_TOO_LARGE");
test(fails, "/", tooLarge, 413, "PAYLOAD_TOO_LARGE");
test(fails, "/tlsnotary/verify", chunked, 413, "PAYLOAD_TOO_LARGE");

test("lists the allowed methods in a 405 response", async (t) => {
  t.is((await ask(node.port, "/health", { method: "POST" })).headers.allow, "GET, HEAD, OPTIONS");
  t.is((await ask(node.port, "/", { method: "PUT" })).headers.allow, "GET, HEAD, POST, OPTIONS");
  t.is((await ask(node.port, "/tlsnotary/verify", { method: "GET" })).headers.allow, "POST, OPTIONS");
});

test("responds to HEAD as to GET, without the body", async (t) => {
  for (const path of ["/health", "/version", "/", `/storage-program/${address}`, "/nope"]) {
    const [head, get] = await Promise.all([ask(node.port, path, { method: "HEAD" }), ask(node.port, path)]);
    t.is(head.status, get.status, path);
    t.is(head.text, "", path);
    t.is(head.headers["content-type"], get.headers["content-type"], path);
    if (path !== "/health") {
      t.is(head.headers["content-length"], get.headers["content-length"], path);
    }
  }
});

test("responds to a preflight on any path", async (t) => {
  for (const path of ["/health", "/", "/nope", "/%ZZ"]) {
    const { status, headers, text } = await ask(node.port, path, {
      method: "OPTIONS",
      headers: { Origin: "http://example.org", "Access-Control-Request-Method": "POST" },
    });
    t.is(status, 204);
    t.is(text, "");
    t.is(headers["access-control-allow-origin"], "*");
    t.is(headers["access-control-allow-methods"], "GET, POST, OPTIONS");
    const allowed = headers["access-control-allow-headers"]!.split(", ");
    for (const name of [
      ...["content-type", "identity", "signature", "timestamp", "network", "if-none-match", "gatehouse-min-block"],
      ...["last-event-id", "cache-control", "traceparent", "tracestate", "baggage"],
      ...["connect-protocol-version", "connect-timeout-ms", "grpc-timeout", "x-grpc-web", "x-user-agent"],
    ]) {
      t.true(allowed.includes(name), name);
    }
  }
});

test("accepts one trailing slash, but not two", async (t) => {
  t.is((await ask(node.port, "/version/")).status, 200);
  t.is((await ask(node.port, `/storage-program/${address}/`)).status, 404);
  t.is((await ask(node.port, "/version//")).status, 404);
});

test("ignores unknown query parameters, and validates known ones", async (t) => {
  t.is((await ask(node.port, "/version?cache=1&__proto__=x&a=%20")).status, 200);
  t.is((await ask(node.port, "/readyz?verbose=perhaps")).status, 400);
});

/** Sends raw bytes, and returns the response until the node closes. */
function raw(bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(node.port, "127.0.0.1", () => socket.write(bytes, "latin1"));
    let text = "";
    socket.setEncoding("latin1").on("data", (chunk: string) => (text += chunk));
    socket.once("error", reject);
    socket.once("close", () => resolve(text));
  });
}

for (const [name, bytes, status, errorCode] of [
  ["no HTTP", "hello\r\n\r\n", 400, "INVALID_REQUEST"],
  [
    "two lengths",
    "GET /version HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    400,
    "INVALID_REQUEST",
  ],
  ["a path with a space", "GET /ver sion HTTP/1.1\r\nHost: a\r\n\r\n", 400, "INVALID_REQUEST"],
  [
    "headers of 100 kB",
    `GET /version HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(100_000)}\r\n\r\n`,
    431,
    "HEADERS_TOO_LARGE",
  ],
] as const) {
  test(`responds with the error body: ${name}`, async (t) => {
    const answer = await raw(bytes);
    t.regex(answer, new RegExp(`^HTTP/1.1 ${status} `));
    const body = JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4)) as object;
    t.like(body, { success: false, errorCode });
  });
}

test("rejects a megabyte of brackets without parsing it", async (t) => {
  const { status, text } = await ask(node.port, "/tlsnotary/verify", { method: "POST", body: "[".repeat(1_000_000) });
  t.is(status, 400);
  t.regex(text, /nested deeper than 128 levels/);
  const rpc = (body: string): Promise<PlainResponse> => ask(node.port, "/", { method: "POST", body });
  t.like(JSON.parse((await rpc("[".repeat(1_000_000))).text), { error: { code: -32700 } });
  t.is((await rpc(`{"jsonrpc":"2.0","id":1,"method":"${'[\\"{'.repeat(200)}"}`)).status, 200);
});

for (const [host, status] of [
  ["a b", 400],
  ["[::", 400],
  ["", 200],
  ["a:99999999", 200],
] as const) {
  test(`responds with ${status} over Connect to the Host header "${host}"`, async (t) => {
    const answer = await ask(node.port, "/gatehouse.info.v1.InfoService/GetVersion", jsonPost("{}", { Host: host }));
    t.is(answer.status, status);
  });
}
