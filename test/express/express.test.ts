/** Express application that mounts a node next to its own routes and services. */
import { createClient, ConnectError, Code } from "@connectrpc/connect";
import { expressConnectMiddleware } from "@connectrpc/connect-express";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import test from "ava";
import express, { type ErrorRequestHandler, type Express } from "express";
import { createGatehouse, GatehouseError } from "gatehouse-client";
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { buffer } from "node:stream/consumers";
import { HealthService } from "../../gen/gatehouse/health/v1/health_pb.js";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";
import { AddedService } from "../../gen/gatehouse/testing/v1/added_pb.js";
import { maxTickBytes } from "../../src/rpc/exchange/pacing.js";
import { version } from "../../src/base/version.js";
import { createCaller } from "../helpers/process/caller.js";
import { listenApp } from "../helpers/nodes/express-app.js";
import { ask, askJson, jsonPost, type PlainResponse } from "../helpers/wire/plain-client.js";
import { run } from "../helpers/process/programs.js";
import { startMember, startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";

/** Starts an application with its own header, route, service and fallback; the node is mounted between them. */
async function createApp(path: string, node: TestNode): Promise<Express> {
  const app = express();
  app.use((_request, response, next) => {
    response.setHeader("X-App", "mine");
    next();
  });
  app.get("/hello", (_request, response) => void response.json({ hello: "from the application" }));
  app.use(
    expressConnectMiddleware({
      routes: (router) => router.service(AddedService, { getThing: ({ name }) => ({ name, count: 7n }) }),
    }),
  );
  app.use(path, (await node.application()).listener);
  app.post("/echo", express.json(), (request, response) => void response.json(request.body));
  app.use((_request, response) => void response.status(404).send("nothing of the application"));
  const onError: ErrorRequestHandler = (_error, _request, response, _next) => void response.status(500).send("broken");
  return app.use(onError);
}

interface Started {
  readonly node: TestNode;
  readonly port: number;
  /** URL of the mount point, without a trailing slash. */
  readonly url: string;
}

async function startApp(
  t: Teardown,
  path: string,
  flags: Readonly<Record<string, string | boolean>> = {},
): Promise<Started> {
  const node = await startTestNode(t, flags);
  const { port, url } = await listenApp(t, await createApp(path, node));
  return { node, port, url: `${url}${path}`.replace(/\/$/, "") };
}

const errorCodeOf = ({ text }: PlainResponse) => (JSON.parse(text) as { readonly errorCode: string }).errorCode;

/** Returns the parts of a response that are equal in every request. */
async function askWhole(port: number, path: string, method = "GET") {
  const { status, headers, text } = await ask(port, path, { method });
  const lasting = Object.fromEntries(
    Object.entries(headers).filter(([name]) => !["date", "x-request-id", "x-powered-by", "x-app"].includes(name)),
  );
  return { status, headers: lasting, text };
}

test("responds below its mount path as the node's port does, and leaves the rest to the application", async (t) => {
  const { node, port } = await startApp(t, "/node");
  for (const path of [
    "/version",
    "/",
    "/publickey",
    "/genesis",
    "/livez?verbose",
    "/blocks?limit=x",
    "/nope",
    "/%zz",
  ]) {
    t.deepEqual(await askWhole(port, `/node${path}`), await askWhole(node.port, path), path);
  }
  t.is((await ask(port, "/node")).text, (await ask(node.port, "/")).text);
  t.is((await ask(port, "/node?x=1")).status, 200);
  t.is((await ask(port, "/node/version")).headers["x-app"], "mine");

  t.deepEqual(await askJson(port, "/hello"), { hello: "from the application" });
  t.deepEqual(JSON.parse((await ask(port, "/echo", jsonPost({ a: 1 }))).text), { a: 1 });
  for (const path of ["/version", "/nodes", "/nope"]) {
    t.like(await ask(port, path), { status: 404, text: "nothing of the application" }, path);
  }
  const missing = await ask(port, "/node/hello");
  t.is(missing.status, 404);
  t.is(missing.headers["content-type"], "application/json; charset=utf-8");
  t.is(errorCodeOf(missing), "NOT_FOUND");
});

test("responds at / to everything that earlier routes leave", async (t) => {
  const { node, port } = await startApp(t, "/");
  t.deepEqual(await askJson(port, "/hello"), { hello: "from the application" });
  t.deepEqual(await askWhole(port, "/version"), await askWhole(node.port, "/version"));
  t.is(errorCodeOf(await ask(port, "/nope")), "NOT_FOUND");
  t.is((await ask(port, "/echo", { method: "POST" })).status, 404);
  const added = createClient(
    AddedService,
    createConnectTransport({ baseUrl: `http://127.0.0.1:${port}`, httpVersion: "1.1" }),
  );
  t.is((await added.getThing({ name: "a" })).count, 7n);
  t.is((await createGatehouse(`http://127.0.0.1:${port}`).info.getVersion({})).version, version);
});

test("serves curl and JSON-RPC, also in batches", async (t) => {
  const { port, url } = await startApp(t, "/node");
  const { stdout } = await run("curl", ["-sS", "-w", "\n%{http_code} %{content_type}", `${url}/version`]);
  t.is(stdout, `"${version}"\n200 application/json; charset=utf-8`);
  const call = { jsonrpc: "2.0", id: 1, method: "info.getVersion" };
  const answer = { jsonrpc: "2.0", id: 1, result: version };
  for (const path of ["/node", "/node/"]) {
    t.deepEqual(JSON.parse((await ask(port, path, jsonPost(call))).text), answer, path);
  }
  t.deepEqual(JSON.parse((await ask(port, "/node", jsonPost([call, { ...call, id: 2 }]))).text), [
    answer,
    { ...answer, id: 2 },
  ]);
});

for (const [name, create] of [
  ["Connect", createConnectTransport],
  ["gRPC-Web", createGrpcWebTransport],
] as const) {
  test(`${name}: serves calls, streams and errors next to a service of the application`, async (t) => {
    const node = await startMember(t);
    const { url } = await listenApp(t, await createApp("/node", node));
    const transport = create({ baseUrl: `${url}/node`, httpVersion: "1.1" });
    t.is((await createClient(InfoService, transport).getVersion({})).version, version);
    const controller = new AbortController();
    const changes = createClient(HealthService, transport).watchHealth({}, { signal: controller.signal });
    for await (const { snapshot } of changes) {
      t.true(snapshot?.accepting);
      break;
    }
    controller.abort();
    const { storage } = createGatehouse(`${url}/node`);
    const error = await t.throwsAsync(storage.getProgram({ storageAddress: "x" }), { instanceOf: GatehouseError });
    t.is(error.reason, "INVALID_REQUEST");
    const added = createClient(AddedService, create({ baseUrl: url, httpVersion: "1.1" }));
    t.is((await added.getThing({ name: "a" })).count, 7n);
    // The node does not serve the application's service, or the application the node's.
    const there = createClient(AddedService, transport);
    t.is((await t.throwsAsync(there.getThing({ name: "a" }), { instanceOf: ConnectError })).code, Code.Unimplemented);
  });
}

test("sends large responses completely, and limits bodies as on the port", async (t) => {
  const { node, port } = await startApp(t, "/node");
  const bytesOf = async (at: number, path: string): Promise<Buffer> => {
    const request = httpRequest({ port: at, host: "127.0.0.1", path, agent: false }).end();
    const [response] = (await once(request, "response")) as [AsyncIterable<Buffer>];
    return await buffer(response);
  };
  const docs = await bytesOf(port, "/node/docs");
  t.true(docs.length > 3 * maxTickBytes);
  t.true(docs.equals(await bytesOf(node.port, "/docs")));

  const call = (bytes: number) =>
    jsonPost({ jsonrpc: "2.0", id: 1, method: "info.getVersion", params: {}, pad: "x".repeat(bytes) });
  t.is((await ask(port, "/node", call(1_500_000))).status, 200);
  const rejected = await ask(port, "/node", call(2_200_000));
  t.is(rejected.status, 413);
  t.is(errorCodeOf(rejected), "PAYLOAD_TOO_LARGE");
});

test("verifies identities, and reads addresses behind trusted proxies", async (t) => {
  const { node, port } = await startApp(t, "/node", {
    "trusted-proxies": "127.0.0.1",
    "rate-limit": "2",
    "rate-limit-exempt": "",
  });
  const caller = createCaller();
  const search = "/node/storage-program/search?q=a";
  t.is((await ask(port, search, { headers: caller.headers() })).status, 200);
  const forged = { ...caller.headers(), signature: `0x${"0".repeat(128)}` };
  t.is(errorCodeOf(await ask(port, search, { headers: forged })), "INVALID_SIGNATURE");

  const forwarded = { headers: { "X-Forwarded-For": "192.0.2.1" } };
  t.is((await ask(port, "/node/publickey", forwarded)).status, 200);
  t.is((await ask(node.port, "/publickey", forwarded)).status, 200);
  t.is(errorCodeOf(await ask(port, "/node/publickey", forwarded)), "RATE_LIMITED");
  t.is((await ask(port, "/node/publickey", { headers: { "X-Forwarded-For": "192.0.2.2" } })).status, 200);
  // The node does not count requests for the application's own routes.
  t.is((await ask(port, "/hello", forwarded)).status, 200);
});

test("releases the slot of a client that disconnects", async (t) => {
  const { url, node } = await startApp(t, "/node", { "streams-per-address": "1", "rate-limit-exempt": "" });
  const { health } = createGatehouse(url);
  const watch = async (signal?: AbortSignal) => {
    const changes = health.watchHealth({}, { signal })[Symbol.asyncIterator]();
    await changes.next();
  };
  const controller = new AbortController();
  await watch(controller.signal);
  await t.throwsAsync(watch(), { instanceOf: GatehouseError });
  await t.throwsAsync(
    createGatehouse(node.rpcUrl).health.watchHealth({})[Symbol.asyncIterator]().next(),
    undefined,
    "one gate for both",
  );
  controller.abort();
  const again = new AbortController();
  t.teardown(() => again.abort());
  await until(() =>
    watch(again.signal).then(
      () => true,
      () => false,
    ),
  );
});

test("rejects requests over the limit without closing the application's connections", async (t) => {
  const node = await startTestNode(t, { "connections-per-address": "1" });
  const app = express();
  let release: (() => void) | undefined;
  app.get("/slow", (_request, response) => {
    release = () => response.send("done");
  });
  const { port, url } = await listenApp(t, app.use("/node", (await node.application()).listener));
  // The node has served this connection before, and the application uses it now.
  const socket = connect(port, "127.0.0.1");
  t.teardown(() => socket.destroy());
  let received = "";
  socket.setEncoding("utf8").on("data", (text: string) => (received += text));
  socket.write("GET /node/version HTTP/1.1\r\nHost: x\r\n\r\n");
  await until(() => received.includes(`"${version}"`));
  socket.write("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  await until(() => release !== undefined);

  const controller = new AbortController();
  t.teardown(() => controller.abort());
  const changes = createGatehouse(`${url}/node`).health.watchHealth({}, { signal: controller.signal });
  await changes[Symbol.asyncIterator]().next();
  const rejected = await ask(port, "/node/version");
  t.is(rejected.status, 503);
  t.is(errorCodeOf(rejected), "OVERLOADED");
  t.is(rejected.headers["retry-after"], "1");
  controller.abort();
  await until(async () => (await ask(port, "/node/version")).status === 200);
  release!();
  await until(() => received.endsWith("done"));
});

test("keeps headers of earlier handlers, overrides equal ones, and works with response wrappers", async (t) => {
  const node = await startTestNode(t);
  const app = express();
  const contentTypes: unknown[] = [];
  app.use((_request, response, next) => {
    response.setHeader("Access-Control-Allow-Origin", "https://app.example");
    response.setHeader("Content-Type", "text/plain");
    response.setHeader("X-Frame-Options", "DENY");
    const writeHead = response.writeHead.bind(response);
    response.writeHead = ((...args: Parameters<typeof writeHead>) => {
      contentTypes.push(response.getHeader("content-type"));
      return writeHead(...args);
    }) as typeof response.writeHead;
    next();
  });
  const { port } = await listenApp(t, app.use("/node", (await node.application()).listener));
  const { headers } = await ask(port, "/node/version");
  t.is(headers["access-control-allow-origin"], "*");
  t.is(headers["content-type"], "application/json; charset=utf-8");
  t.is(headers["x-frame-options"], "DENY");
  t.deepEqual(contentTypes, ["application/json; charset=utf-8"]);
});

test("completes requests in flight and rejects new ones after the node stops, while the application runs", async (t) => {
  const { node, port, url } = await startApp(t, "/node");
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "info.getVersion" });
  const socket = connect(port, "127.0.0.1");
  t.teardown(() => socket.destroy());
  let received = "";
  socket.setEncoding("utf8").on("data", (text: string) => (received += text));
  const half = body.length / 2;
  socket.write(`POST /node HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, half)}`);
  const changes = createGatehouse(url).health.watchHealth({})[Symbol.asyncIterator]();
  await changes.next();

  const stopped = node.stop();
  await until(async () => (await ask(port, "/node/version")).status === 503);
  socket.write(body.slice(half));
  await until(() => received.includes(`"result":"${version}"`));
  await t.notThrowsAsync(async () => {
    for (let change = await changes.next(); change.done !== true; change = await changes.next());
  });
  await stopped;
  const rejected = await ask(port, "/node", jsonPost({}));
  t.is(rejected.status, 503);
  t.is(errorCodeOf(rejected), "STATE_NOT_READY");
  t.deepEqual(await askJson(port, "/hello"), { hello: "from the application" });
});
