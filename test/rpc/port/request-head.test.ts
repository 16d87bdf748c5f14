/** Errors below the protocols: each has the common body, a request ID and a log line, in both edges. */
import test from "ava";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { startEdgeServer, waitingAnswer } from "../../helpers/nodes/edge-server.js";
import type { Teardown } from "../../helpers/nodes/teardown.js";
import { connectTransport } from "../../helpers/wire/transports.js";
import { until } from "../../helpers/nodes/until.js";

const get = "GET /health HTTP/1.1\r\n";
const host = "Host: a\r\n";

/** Heads without their empty line, and the status. */
const heads: readonly (readonly [title: string, head: string, status: number, errorCode: string])[] = [
  ["no Host", get, 400, "INVALID_REQUEST"],
  ["two Host lines", `${get}${host}${host}`, 400, "INVALID_REQUEST"],
  ["a second Host line after 2,500 others", `${get}${host}${"a:\r\n".repeat(2_500)}${host}`, 400, "INVALID_REQUEST"],
  ["a list of hosts", `${get}Host: a, b\r\n`, 400, "INVALID_REQUEST"],
  ["a host with markup", `${get}Host: a b<script>\r\n`, 400, "INVALID_REQUEST"],
  ["a line that is no header", `${get}${host}nothing\r\n`, 400, "INVALID_REQUEST"],
  ["headers that are too large", `${get}${host}X-Long: ${"x".repeat(20_000)}\r\n`, 431, "HEADERS_TOO_LARGE"],
  ["an unknown expectation", `${get}${host}Expect: more\r\n`, 417, "INVALID_REQUEST"],
  ["a transfer coding", `POST / HTTP/1.1\r\n${host}Transfer-Encoding: gzip, chunked\r\n`, 501, "NOT_IMPLEMENTED"],
  ["CONNECT", `CONNECT a:1 HTTP/1.1\r\n${host}`, 405, "METHOD_NOT_ALLOWED"],
];

/** Sends bytes, and returns all that the server sends until it closes the connection or `isComplete` is true. */
async function exchangeBytes(t: Teardown, port: number, bytes: string, isComplete = (_: string) => false) {
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  t.teardown(() => socket.destroy());
  socket.write(bytes);
  let text = "";
  let isEnded = false;
  socket.on("data", (chunk: Buffer) => (text += chunk.toString())).on("end", () => (isEnded = true));
  await until(() => isEnded || isComplete(text));
  return text;
}

/** Opens a connection, and collects the responses. */
function connectEarly(t: Teardown, port: number) {
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  t.teardown(() => socket.destroy());
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
  return {
    write: (bytes: string): boolean => socket.write(bytes),
    text: (): string => text,
    /** Returns the statuses of the responses, each of which begins where the body before it ends. */
    statuses(): number[] {
      const statuses: number[] = [];
      for (let at = 0; at < text.length;) {
        const [, status, headers = ""] = /^HTTP\/1\.1 (\d{3}) [^\r]*\r\n([^]*?\r\n)\r\n/.exec(text.slice(at)) ?? [];
        if (status === undefined) {
          return [...statuses, NaN];
        }
        statuses.push(Number(status));
        at = text.indexOf("\r\n\r\n", at) + 4 + Number(/content-length: (\d+)/i.exec(headers)?.[1] ?? 0);
      }
      return statuses;
    },
    ended: once(socket, "end"),
  };
}

const isWhole = (text: string): boolean => {
  const [head = "", body] = text.split("\r\n\r\n");
  return body !== undefined && body.length >= Number(/content-length: (\d+)/i.exec(head)?.[1]);
};

for (const edge of ["compiled", "express"] as const) {
  for (const [title, head, status, errorCode] of heads) {
    test(`${title} is ${status} with the common body, ${edge} edge`, async (t) => {
      const { port, access } = await startEdgeServer(t, {}, edge);
      const [lines = "", body = ""] = (await exchangeBytes(t, port, `${head}\r\n`, isWhole)).split("\r\n\r\n");
      t.true(lines.startsWith(`HTTP/1.1 ${status} `), lines);
      t.like(JSON.parse(body), { success: false, errorCode });
      const requestId = /^x-request-id: (.+)$/im.exec(lines)?.[1];
      t.truthy(requestId);
      t.regex(lines, /^content-type: application\/json; charset=utf-8$/im);
      t.regex(lines, /^x-content-type-options: nosniff$/im);
      await until(() => access.some((line) => line.requestId === requestId && line.code === errorCode));
    });
  }

  for (const [title, head, status] of heads) {
    test(`${title}, after an unanswered request, gets the second response, ${edge} edge`, async (t) => {
      const { port, release } = await startEdgeServer(t, {}, edge);
      const early = connectEarly(t, port);
      early.write(`GET ${waitingAnswer} HTTP/1.1\r\n${host}\r\n${head}\r\n`);
      // A later connection has its response, so the server has read the earlier one.
      await exchangeBytes(t, port, `${get}${host}\r\n`, isWhole);
      t.is(early.text(), "");
      release();
      await until(() => early.statuses().length === 2);
      t.deepEqual(early.statuses(), [200, status]);
    });
  }

  for (const [title, body, status] of [
    ["a body with an invalid chunk", "Transfer-Encoding: chunked\r\n\r\nnothing\r\n", 400],
    ["an invalid chunk after a valid one", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\nnothing\r\n", 400],
    ["an unknown Transfer-Encoding", "Transfer-Encoding: gzip\r\n\r\nnothing\r\n\r\n", 501],
    ["codings that end with an unknown one", "Transfer-Encoding: chunked, gzip\r\n\r\nnothing\r\n\r\n", 400],
  ] as const) {
    test(`${title} gets one response, in order, then the connection closes, ${edge} edge`, async (t) => {
      const { port, release, access } = await startEdgeServer(t, {}, edge);
      const post = `POST /gatehouse.health.v1.HealthService/GetHealth HTTP/1.1\r\n${host}Content-Type: application/json\r\n`;
      const early = connectEarly(t, port);
      early.write(`GET ${waitingAnswer} HTTP/1.1\r\n${host}\r\n${post}${body}`);
      await exchangeBytes(t, port, `${get}${host}\r\n`, isWhole);
      t.is(early.text(), "");
      // What follows cannot be a request.
      early.write(`${get}${host}\r\n`);
      release();
      await early.ended;
      t.deepEqual(early.statuses(), [200, status]);
      t.regex(early.text(), /\r\nConnection: close\r\n[^]*$/i);
      const code = status === 400 ? "INVALID_REQUEST" : "NOT_IMPLEMENTED";
      await until(() => access.length === 3);
      t.deepEqual(access.map((line) => line.code).sort(), [code, "OK", "OK"].sort());
    });
  }

  test(`a host with a port, IPv6, and none in HTTP/1.0 are accepted; an upgrade is ignored, ${edge} edge`, async (t) => {
    const { port } = await startEdgeServer(t, {}, edge);
    for (const head of [
      `${get}Host: a.example:80\r\n`,
      `${get}Host: [::1]:1\r\n`,
      `${get}Host:\r\n`,
      "GET /health HTTP/1.0\r\n",
      `${get}${host}Connection: upgrade\r\nUpgrade: websocket\r\n`,
    ]) {
      t.regex(await exchangeBytes(t, port, `${head}\r\n`, isWhole), /^HTTP\/1\.1 200 /, head);
    }
  });

  test(`100 comes before a body that is read, and not before a rejection, ${edge} edge`, async (t) => {
    const { port } = await startEdgeServer(t, {}, edge);
    const post = (path: string, length: number): string =>
      `POST ${path} HTTP/1.1\r\n${host}Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: ${length}\r\n\r\n`;
    const health = "/gatehouse.health.v1.HealthService/GetHealth";
    for (const path of [health, "/"]) {
      const first = await exchangeBytes(t, port, post(path, 2), (text) => text !== "");
      t.is(first, "HTTP/1.1 100 Continue\r\n\r\n", path);
    }
    for (const [path, length, status] of [
      [health, 3_000_000, 429],
      ["/", 3_000_000, 413],
      ["/nothing", 10, 404],
    ] as const) {
      // The connection ends, because the server cannot know whether a body follows.
      t.regex(await exchangeBytes(t, port, post(path, length)), new RegExp(`^HTTP/1\\.1 ${status} `), path);
    }
  });
}

test("100-continue is answered over HTTP/2, and other expectations are 417", async (t) => {
  const { port } = await startEdgeServer(t);
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  t.teardown(() => session.destroy());
  const headers = { ":method": "POST", ":path": "/gatehouse.health.v1.HealthService/GetHealth" };
  const request = session.request({ ...headers, "content-type": "application/json", expect: "100-continue" });
  await once(request, "continue");
  request.end("{}");
  const [response] = (await once(request, "response")) as [{ ":status": number }];
  t.is(response[":status"], 200);

  const large = session.request({ ...headers, expect: "100-continue", "content-length": "3000000", ":path": "/" });
  let isContinued = false;
  large.on("continue", () => (isContinued = true));
  const [refused] = (await once(large, "response")) as [{ ":status": number }];
  t.deepEqual([refused[":status"], isContinued], [413, false]);

  const client = connectTransport("HTTP/2 by prior knowledge", { port });
  t.teardown(() => client.close());
  const { status, text } = await client.ask("/health", { headers: { expect: "more" } });
  t.is(status, 417);
  t.like(JSON.parse(text), { success: false, errorCode: "INVALID_REQUEST" });
  t.is((await client.ask("/health", { headers: { ":authority": "a b" } }).catch(() => ({ status: 400 }))).status, 400);
});
