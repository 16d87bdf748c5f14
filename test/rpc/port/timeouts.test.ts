/** Time limits of a port, set to short times: for heads, bodies, and idle HTTP/2 connections. */
import test, { type ExecutionContext } from "ava";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import type { Socket } from "node:net";
import type { RpcError } from "../../../src/rpc/errors.js";
import type { Exchange } from "../../../src/rpc/exchange/exchange.js";
import { errorResponse } from "../../../src/rpc/exchange/responses.js";
import type { PortDeps } from "../../../src/rpc/port/port.js";
import { until } from "../../helpers/nodes/until.js";
import { frameBytes, frameTypes, preface } from "../../helpers/wire/http2-frames.js";
import { freePermit, startTestPort } from "../../helpers/wire/test-port.js";

/** Starts a port that responds with the path, to a path with "held" when the test says so, and reads bodies. */
async function start(t: ExecutionContext, isTls: boolean, more: Pick<PortDeps, "timeouts" | "idleTimeoutMs">) {
  const held: Exchange[] = [];
  const respond = (exchange: Exchange): void =>
    exchange.send({ status: 200, headers: ["Content-Type", "text/plain"], body: `${exchange.path};` });
  const handle = (exchange: Exchange): void => {
    if (exchange.method === "POST") {
      exchange.readBytes(1_000, freePermit).then(
        () => respond(exchange),
        (failure: unknown) => exchange.send(errorResponse(exchange.requestId, failure as RpcError)),
      );
    } else if (exchange.path.includes("held")) {
      held.push(exchange);
    } else {
      respond(exchange);
    }
  };
  return { ...(await startTestPort(t, isTls, handle, more)), held, release: () => held.splice(0).forEach(respond) };
}

/** Returns all that arrives until the server closes the connection. */
async function readAll(socket: Socket): Promise<string> {
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
  await once(socket, "close");
  return text;
}

/** The field ":path: /" in HPACK. */
const pathField = Buffer.of(0x84);

const timedOut =
  /HTTP\/1\.1 408 Request Timeout\r\n(?:(?!HTTP\/)[^])*Connection: close\r\n[^]*"errorCode":"REQUEST_TIMEOUT"\}$/i;
const partOfHead = "GET / HTTP/1.1\r\nHost: a\r\nX-";

for (const isTls of [false, true]) {
  const via = isTls ? "TLS" : "cleartext";
  const shortHead = { timeouts: { headersTimeout: 2_000, connectionsCheckingInterval: 50 } };

  test(`${via}: a head that does not arrive is 408, and the connection is closed`, async (t) => {
    const { open } = await start(t, isTls, shortHead);
    const socket = open();
    socket.write(partOfHead);
    const text = await readAll(socket);
    t.true(text.startsWith("HTTP/1.1 408 "), text);
    t.regex(text, timedOut);
  });

  test(`${via}: a head that does not arrive after an unanswered request is the second response`, async (t) => {
    const { open, held, release } = await start(t, isTls, shortHead);
    const [socket, other] = [open(), open()];
    socket.write(`GET /held HTTP/1.1\r\nHost: a\r\n\r\n${partOfHead}`);
    await until(() => held.length === 1);
    // The time of the other connection starts later, and it has ended.
    other.write(partOfHead);
    const text = readAll(socket);
    await readAll(other);
    release();
    t.regex(await text, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n\/held;HTTP\/1\.1 408 /);
    t.regex(await text, timedOut);
  });

  test(`${via}: a body that does not arrive is 408, and the connection is closed`, async (t) => {
    const { open } = await start(t, isTls, { timeouts: { ...shortHead.timeouts, requestTimeout: 2_000 } });
    for (const length of ["Content-Length: 10", "Transfer-Encoding: chunked"]) {
      const socket = open();
      socket.write(`POST / HTTP/1.1\r\nHost: a\r\n${length}\r\n\r\n1\r\n{`);
      const text = await readAll(socket);
      t.true(text.startsWith("HTTP/1.1 408 "), text);
      t.regex(text, timedOut, length);
    }
  });

  test(`${via}: a connection without a request, or with part of the HTTP/2 preface, is closed without a response`, async (t) => {
    const { open } = await start(t, isTls, shortHead);
    for (const bytes of ["", "PRI * HTTP/2.0\r\n"]) {
      const socket = open();
      socket.write(bytes);
      t.is(await readAll(socket), "", bytes);
    }
  });

  test(`${via}: an idle HTTP/2 connection is closed after its time with GOAWAY, one with a stream stays`, async (t) => {
    const port = await start(t, isTls, { idleTimeoutMs: 10, timeouts: { http2IdleTimeout: 1_000 } });
    const connect = () => {
      const session = connectHttp2(
        port.url,
        port.ca === undefined ? {} : { ca: port.ca, checkServerIdentity: () => undefined },
      );
      t.teardown(() => session.destroy());
      session.on("error", (error: Error) => t.fail(error.message));
      return session;
    };
    const busy = connect();
    const stream = busy.request({ ":path": "/held" });
    await until(() => port.held.length === 1);
    const idle = connect();
    const goaway = once(idle, "goaway");
    const [answer] = (await once(idle.request({ ":path": "/" }), "response")) as [{ ":status": number }];
    t.is(answer[":status"], 200);
    const [code] = (await goaway) as [number];
    t.is(code, 0);
    await until(() => idle.closed);
    t.false(busy.closed);
    const ended = once(busy, "goaway");
    const response = once(stream, "response");
    port.release();
    t.is(((await response) as [{ ":status": number }])[0][":status"], 200);
    stream.resume();
    t.is(((await ended) as [number])[0], 0);
  });

  test(`${via}: an HTTP/2 connection whose header block never ends is closed after the idle time`, async (t) => {
    const { open } = await start(t, isTls, { idleTimeoutMs: 10, timeouts: { http2IdleTimeout: 1_000 } });
    const socket = open();
    const sinceMs = performance.now();
    const frames = [frameBytes(frameTypes.settings, 0, 0), frameBytes(frameTypes.headers, 0, 1, pathField)];
    socket.write(Buffer.concat([preface, ...frames]));
    // Few enough for nghttp2, which ends a connection for too many of them.
    const timer = setInterval(() => socket.write(frameBytes(frameTypes.continuation, 0, 1, pathField)), 300);
    t.teardown(() => clearInterval(timer));
    await once(socket.resume(), "close");
    t.true(performance.now() - sinceMs >= 900);
  });
}
