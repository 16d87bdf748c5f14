/** Hostile requests on every route and in every protocol: always a response, never a crash, a hang or a leak. */
import test from "ava";
import { randomBytes } from "node:crypto";
import { request as httpRequest } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2, constants } from "node:http2";
import { connect, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { readHttpRoutes } from "../../src/rpc/http/http-rule.js";
import { createCaller } from "../helpers/process/caller.js";
import { contractServices } from "../helpers/process/contract-files.js";
import { grpcMessage } from "../helpers/wire/http2-frames.js";
import { ask, askJson, jsonPost } from "../helpers/wire/plain-client.js";
import { sharedTestNode } from "../helpers/nodes/start-node.js";
import { until } from "../helpers/nodes/until.js";

const methods = (await contractServices()).flatMap((service) => service.methods);

const routes = methods.flatMap(readHttpRoutes).filter(({ method }) => method === "GET" || method === "POST");

const texts = [
  ..."%ZZ % %00 %C0%AF %E0%80%AF %F0%82%82%AC %ED%A0%80 .. %2e%2e%2f%2e%2e%2fetc%2fpasswd __proto__ constructor".split(
    " ",
  ),
  ..."%F0%9F%98%80 '%20OR%201=1-- %25%27%22%5C 9007199254740993 -1".split(" "),
  "0x".padEnd(70, "f"),
  "a".repeat(4_000),
];
const queries = [
  ..."limit=abc limit=1e3 limit=-1 limit=1&limit=2 limit= offset=99999999999999999999 q=%00 q=%ZZ q=a&q=b".split(" "),
  ..."q[]=a exact=maybe&q=a __proto__=1&constructor=2 verbose=&exclude= &&&===".split(" "),
  `q=${"a".repeat(8_000)}`,
];

/** Declares the tests for a node with these flags. */
export function testHostileRequests(flags: Readonly<Record<string, string>>): void {
  const node = sharedTestNode({ "tlsnotary-enabled": true, ...flags });
  async function isFine(t: { is: (a: unknown, b: unknown) => void }): Promise<void> {
    t.is((await askJson<{ status: string }>(node.port, "/health")).status, "dormant");
  }

  /** True if the response is a stream, which is not read. */
  async function begins(path: string, method: string): Promise<boolean> {
    const ended = new AbortController();
    const { status, headers } = await fetch(`http://127.0.0.1:${node.port}${path}`, { method, signal: ended.signal });
    ended.abort();
    return status === 200 && headers.get("content-type") === "text/event-stream; charset=utf-8";
  }

  for (const { method: routed, template, isStream } of routes) {
    test(`${routed} ${template} responds to any input normally or with the error body`, async (t) => {
      const segments = template.split("/");
      const paths = template.includes("{")
        ? texts.map((text) => segments.map((segment) => (segment.startsWith("{") ? text : segment)).join("/"))
        : [];
      paths.push(...queries.map((query) => `${template.replace(/\{[^}]*\}/g, "x")}?${query}`));
      for (const path of paths) {
        for (const method of [routed, "DELETE"]) {
          if (isStream && (await begins(path, method))) {
            continue;
          }
          const { status, text, headers } = await ask(node.port, path, {
            method,
            ...(method === "POST" && { body: "{" }),
          });
          t.is(headers["content-type"], "application/json; charset=utf-8", path);
          const body = JSON.parse(text) as { success?: boolean; errorCode?: string };
          t.true(
            status < 500 ||
              body.errorCode === "STATE_NOT_READY" ||
              path.includes("tlsnotary") ||
              path.startsWith("/readyz"),
            `${path}: ${status} ${text}`,
          );
          t.true(
            status < 400 || status === 503 || (body.success === false && typeof body.errorCode === "string"),
            path,
          );
          t.false(/at .*\.js|SQLITE|Error:/.test(text), text);
        }
      }
    });
  }

  for (const method of methods) {
    const path = `/${method.parent.typeName}/${method.name}`;
    test(`${path} rejects malformed messages in every protocol`, async (t) => {
      const garbage = [
        Buffer.from([0xff]),
        Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]),
        randomBytes(500),
        Buffer.alloc(0),
      ];
      const session = connectHttp2(`http://127.0.0.1:${node.port}`);
      t.teardown(() => session.destroy());
      for (const bytes of garbage) {
        const bodies = [
          ["application/json", bytes],
          ["application/json", Buffer.from('{"__proto__":{"a":1}}')],
          ["application/json", Buffer.from("[1,2")],
          ["application/proto", bytes],
          ["application/grpc-web+proto", grpcMessage(bytes)],
          ["application/grpc-web+proto", bytes],
          ["application/connect+json", grpcMessage(bytes)],
          ["text/plain", bytes],
          ["application/grpc", grpcMessage(bytes)],
        ] as const;
        for (const [type, body] of bodies) {
          const headers = { "Content-Type": type };
          const { status, text } = await askBeginning(path, body, headers);
          t.true(status < 500 || method.methodKind === "unary", `${type}: ${status} ${text}`);
          t.false(/\.js:\d|SQLITE|TypeError/.test(text), text);
        }
        const { status } = await callGrpc(session, path, grpcMessage(bytes));
        t.true(status !== "2" && status !== "13", `grpc-status ${status}`);
      }
    });
  }

  /** Sends a request. Returns the first part of the response body, because a valid stream has no end. */
  async function askBeginning(
    path: string,
    body: Buffer,
    headers: Readonly<Record<string, string>>,
  ): Promise<{ readonly status: number; readonly text: string }> {
    return await new Promise((resolve, reject) => {
      const request = httpRequest({ port: node.port, path, method: "POST", headers, agent: false }, (response) => {
        const done = (text: string): void => {
          resolve({ status: response.statusCode ?? 0, text });
          request.destroy();
        };
        response.once("data", (chunk: Buffer) => done(chunk.toString("utf8")));
        response.once("end", () => done(""));
      });
      request.once("error", reject);
      request.end(body);
    });
  }

  /** Returns the grpc-status of a call; "open" for a stream with messages. */
  async function callGrpc(
    session: ClientHttp2Session,
    path: string,
    body: Buffer,
    headers: Record<string, string> = {},
  ): Promise<{ readonly status: string }> {
    return await new Promise((resolve) => {
      const stream = session.request({
        ":method": "POST",
        ":path": path,
        "content-type": "application/grpc",
        te: "trailers",
        ...headers,
      });
      const done = (status: unknown): void => resolve({ status: String(status) });
      stream.on("response", (h) => h["grpc-status"] !== undefined && done(h["grpc-status"]));
      stream.on("trailers", (h: Record<string, unknown>) => done(h["grpc-status"]));
      stream.on("data", () => {
        done("open");
        stream.close(constants.NGHTTP2_CANCEL);
      });
      stream.on("error", () => done("reset"));
      stream.on("close", () => done("closed"));
      stream.end(body);
    });
  }

  const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
  const getVersion = "/gatehouse.info.v1.InfoService/GetVersion";

  test.serial("rejects a decompression bomb before it is fully decompressed", async (t) => {
    const before = process.memoryUsage.rss();
    for (let i = 0; i < 20; i++) {
      const json = await ask(node.port, getVersion, jsonPost(bomb, { "Content-Encoding": "gzip" }));
      t.is((JSON.parse(json.text) as { code: string }).code, "resource_exhausted");
      const web = await ask(node.port, getVersion, {
        method: "POST",
        body: grpcMessage(bomb, 1),
        headers: { "Content-Type": "application/grpc-web+proto", "Grpc-Encoding": "gzip" },
      });
      t.regex(`${String(web.headers["grpc-status"])}${web.text}`, /8/);
      const session = connectHttp2(`http://127.0.0.1:${node.port}`);
      t.teardown(() => session.destroy());
      t.is((await callGrpc(session, getVersion, grpcMessage(bomb, 1), { "grpc-encoding": "gzip" })).status, "8");
    }
    const grownMb = Math.round((process.memoryUsage.rss() - before) / 1024 ** 2);
    t.log(`memory grew by ${grownMb} MiB over 60 bombs of 64 MiB`);
    await isFine(t);
  });

  test("rejects a body by its announced length of 1 GB", async (t) => {
    for (const [path, type] of [
      ["/", "application/json"],
      ["/tlsnotary/verify", "application/json"],
      [getVersion, "application/json"],
      [getVersion, "application/proto"],
    ] as const) {
      const answer = await send(
        `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: ${type}\r\nContent-Length: 1073741824\r\n\r\n`,
      );
      t.regex(answer, /^HTTP\/1\.1 (413|429|400)/, `${path} ${type}`);
      t.regex(answer, /PAYLOAD_TOO_LARGE|resource_exhausted/);
    }
    await isFine(t);
  });

  test("responds or closes if a length is wrong, and serves the next connection", async (t) => {
    for (const [head, body, status] of [
      ["Content-Length: 2", "{}GARBAGE", /^HTTP\/1\.1 (200|400)/],
      ["Content-Length: 5\r\nContent-Length: 6", "{}", /^HTTP\/1\.1 400/],
      ["Content-Length: -5", "", /^HTTP\/1\.1 400/],
      ["Content-Length: 5\r\nTransfer-Encoding: chunked", "0\r\n\r\n", /^HTTP\/1\.1 400/],
      ["Transfer-Encoding: chunked", "zz\r\n", /^HTTP\/1\.1 400/],
      [`X: ${"a".repeat(16_384)}`, "", /^HTTP\/1\.1 431[^]*HEADERS_TOO_LARGE/],
    ] as const) {
      t.regex(await send(`POST / HTTP/1.1\r\nHost: a\r\n${head}\r\n\r\n${body}`), status, head);
    }
    const short = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\n{";
    t.regex(await send(short, { end: true }), /^(HTTP\/1\.1 400|$)/);
    await isFine(t);
  });

  /** Sends bytes. Returns the response until the node closes, or 300 ms after its first bytes. */
  function send(bytes: string, { end = false } = {}): Promise<string> {
    return new Promise((resolve) => {
      let text = "";
      const socket = connect(node.port, "127.0.0.1", () => (end ? socket.end(bytes) : socket.write(bytes)));
      socket.on("data", (chunk: Buffer) => {
        text += chunk.toString("latin1");
        setTimeout(() => socket.destroy(), 300);
      });
      socket.on("error", () => undefined);
      socket.on("close", () => resolve(text));
    });
  }

  test("ignores forwarding headers without a trusted proxy", async (t) => {
    for (const [name, value] of [
      ["X-Forwarded-For", "203.0.113.7"],
      ["Forwarded", "for=203.0.113.7"],
      ["X-Forwarded-For", "a".repeat(8_000)],
      ["Forwarded", 'for="[::1'],
      ["X-Real-IP", "203.0.113.7"],
    ] as const) {
      const { text } = await ask(node.port, "/", { headers: { [name]: value } });
      t.is((JSON.parse(text) as { yourIP: string }).yourIP, "127.0.0.1");
    }
  });

  test.serial("limits silent connections, and serves others meanwhile", async (t) => {
    const before = process.memoryUsage.rss();
    const sockets: Socket[] = [];
    let closed = 0;
    t.teardown(() => sockets.forEach((socket) => socket.destroy()));
    for (let i = 0; i < 4_000; i++) {
      const socket = connect(node.port, "127.0.0.1");
      socket.on("error", () => undefined).on("close", () => closed++);
      sockets.push(socket);
      if (i % 100 === 0) {
        // Wait until the earlier ones are accepted, because the system silently drops what overflows its queue.
        await ask(node.port, "/livez").catch(() => undefined);
      }
    }
    await until(() => closed >= 3_000);
    await isFine(t);
    t.log(
      `memory grew by ${Math.round((process.memoryUsage.rss() - before) / 1024 ** 2)} MiB, both ends of 4,000 connections in it`,
    );
  });

  test("rejects malformed and oversized identity headers with 401", async (t) => {
    const path = `/storage-program/stor-${"0".repeat(40)}`;
    const headers = createCaller().headers();
    for (const [name, value] of [
      ["identity", `ed25519:${"a".repeat(8_000)}`],
      ["signature", "0".repeat(8_000)],
      ["timestamp", "9".repeat(400)],
      ["timestamp", "-1"],
      ["timestamp", "NaN"],
    ] as const) {
      const { status, text } = await ask(node.port, path, { headers: { ...headers, [name]: value } });
      t.is(status, 401);
      t.is((JSON.parse(text) as { errorCode: string }).errorCode, "INVALID_SIGNATURE");
    }
  });

  test("responds with a Connect error and its reason to invalid JSON", async (t) => {
    for (const body of ["[1,2", "null", "", "[".repeat(1_000_000), " ".repeat(2_100_000)]) {
      const { status, text, headers } = await ask(node.port, getVersion, jsonPost(body));
      const isLarge = body.length > 64 * 1024;
      t.is(status, isLarge ? 429 : 400);
      t.is(headers["content-type"], "application/json");
      const { code, details } = JSON.parse(text) as { code: string; details: { debug: { reason: string } }[] };
      t.is(code, isLarge ? "resource_exhausted" : "invalid_argument");
      t.is(details[0]!.debug.reason, isLarge ? "PAYLOAD_TOO_LARGE" : "INVALID_REQUEST");
    }
  });
}
