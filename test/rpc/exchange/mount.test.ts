/** Requests that another server accepts, whose handlers may change them first. */
import test from "ava";
import express, { type RequestHandler } from "express";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { createUnrestrictedGate } from "../../../src/edge/unrestricted-gate.js";
import type { Exchange } from "../../../src/rpc/exchange/exchange.js";
import { jsonResponse } from "../../../src/rpc/exchange/responses.js";
import { createMount } from "../../../src/rpc/exchange/mount.js";
import { listenApp } from "../../helpers/nodes/express-app.js";
import { ask, jsonPost } from "../../helpers/wire/plain-client.js";
import { until } from "../../helpers/nodes/until.js";

/** Creates a mount that passes its requests to this handler. */
function mountOf(handle: (exchange: Exchange) => void) {
  const errors: unknown[] = [];
  const onInternalError = (error: unknown): void => void errors.push(error);
  let requests = 0;
  const mount = createMount({
    gate: createUnrestrictedGate(),
    onInternalError,
    nextRequestId: () => `r-${++requests}`,
  });
  const handler: RequestHandler = (request, response) => {
    const exchange = mount.accept(request, response);
    if (exchange !== undefined) {
      handle(exchange);
    }
  };
  return { mount, handler, errors };
}

/** Responds with the number of bytes in the body. */
function countBytes(exchange: Exchange): void {
  void exchange
    .readBytes(1_000_000, { occupySlot: () => undefined, reserveRequestBytes: () => undefined })
    .then(({ length }) => exchange.send(jsonResponse(exchange.requestId, 200, { body: String(length) })));
}

const parsers: Readonly<Record<string, RequestHandler>> = {
  "express.json()": express.json(),
  "express.text()": express.text({ type: () => true }),
  "express.raw()": express.raw({ type: () => true, limit: "1mb" }),
};

for (const [name, parser] of Object.entries(parsers)) {
  test(`responds with 500, and logs a remedy, if ${name} has read the body`, async (t) => {
    const { handler, errors } = mountOf(countBytes);
    const { port } = await listenApp(t, express().use(parser, handler));
    for (const size of [2, 90_000]) {
      const { status, text } = await ask(port, "/", jsonPost(`{${" ".repeat(size - 2)}}`));
      t.is(status, 500);
      t.like(JSON.parse(text), { success: false, errorCode: "INTERNAL_ERROR" });
    }
    t.is(errors.length, 2);
    t.regex(String(errors[0]), /mount the node before body parsers, such as express\.json\(\)/);
    t.is((await ask(port, "/")).text, "0", "what has no body needs none");
  });
}

test("accepts a body that a parser left unread", async (t) => {
  const { handler, errors } = mountOf(countBytes);
  const { port } = await listenApp(t, express().use(express.json(), handler));
  t.is((await ask(port, "/", { method: "POST", body: "1234" })).text, "4");
  t.deepEqual(errors, []);
});

test("aborts requests that outlast the drain, and leaves the server running", async (t) => {
  const { mount, handler } = mountOf(() => undefined);
  const app = express().get("/mine", (_request, response) => void response.send("mine"));
  const { port, server } = await listenApp(t, app.use(handler));
  const socket = connect(port, "127.0.0.1");
  t.teardown(() => socket.destroy());
  const arrived = once(server, "request");
  socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  await arrived;
  const closed = once(socket, "close");
  await mount.drain(10);
  await closed;
  t.is((await ask(port, "/mine")).text, "mine");
  t.is((await ask(port, "/")).status, 503);
});

test("finishes draining when the last response is sent", async (t) => {
  const waiting: Exchange[] = [];
  const { mount, handler } = mountOf((exchange) => void waiting.push(exchange));
  const { port } = await listenApp(t, express().use(handler));
  const answers = [ask(port, "/"), ask(port, "/")];
  await until(() => waiting.length === 2);
  let isDrained = false;
  const drained = mount.drain(60_000).then(() => (isDrained = true));
  waiting[0]!.send(jsonResponse("", 200, { body: "1" }));
  await Promise.race(answers);
  t.is((await ask(port, "/")).status, 503);
  t.false(isDrained);
  waiting[1]!.send(jsonResponse("", 200, { body: "2" }));
  t.deepEqual((await Promise.all(answers)).map(({ text }) => text).sort(), ["1", "2"]);
  await drained;
});

test("resolves every concurrent drain", async (t) => {
  const waiting: Exchange[] = [];
  const { mount, handler } = mountOf((exchange) => void waiting.push(exchange));
  const { port } = await listenApp(t, express().use(handler));
  const answer = ask(port, "/");
  await until(() => waiting.length === 1);
  const drained = [mount.drain(60_000), mount.drain(60_000)];
  waiting[0]!.send(jsonResponse("", 200, { body: "1" }));
  t.is((await answer).status, 200);
  await Promise.all(drained);
});

test("closes a connection that was reset before its accept, without handling its request", async (t) => {
  const paths: string[] = [];
  const { handler } = mountOf((exchange) => {
    paths.push(exchange.path);
    exchange.send(jsonResponse(exchange.requestId, 200, {}));
  });
  const { port } = await listenApp(t, express().use(handler));
  // The server of this process accepts the connection only after the other process has reset it.
  const send = `const socket = require("node:net").connect(${port}, "127.0.0.1");
    socket.write("GET /reset HTTP/1.1\\r\\nHost: node\\r\\n\\r\\n", () => socket.resetAndDestroy());`;
  t.is(spawnSync(process.execPath, ["-e", send]).status, 0);
  t.is((await ask(port, "/after")).status, 200);
  t.deepEqual(paths, ["/after"]);
});
