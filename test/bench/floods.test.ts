/** The floods and the judge of the suite hostile: they send what their names say, and count what arrives. */
import test, { type ExecutionContext } from "ava";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { type AddressInfo, createServer as createRawServer, type Server, type Socket } from "node:net";
import { attackerAddress, type Target } from "../../tools/bench/attacks/attack.js";
import { clientHello } from "../../tools/bench/attacks/doors.js";
import { floodRequests, framesOf, textOf } from "../../tools/bench/attacks/exempt.js";
import {
  createFrameScanner,
  keepOpen,
  openAndLeave,
  openStreams,
  pipeline,
  repeated,
  sendAndWait,
} from "../../tools/bench/attacks/flood.js";
import { startJudge } from "../../tools/bench/attacks/judge.js";
import { createClient } from "../../tools/bench/attacks/transport.js";
import { createVariant } from "../../tools/bench/attacks/variant.js";
import { bystanders } from "../../tools/bench/attacks/verdict.js";
import { startMember, startTlsNode } from "../helpers/nodes/start-node.js";
import { frameBytes, frameTypes } from "../helpers/wire/http2-frames.js";
import { ask, askJson, openFrom } from "../helpers/wire/plain-client.js";
import { connectRawHttp2 } from "../helpers/wire/raw-http2.js";

const target = { isControl: false } as Target;

/** Starts a server on a free port, as a door. */
async function doorOf(t: ExecutionContext, server: Server) {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket.on("error", () => undefined)));
  t.teardown(() => {
    sockets.forEach((socket) => socket.destroy());
    server.close();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return { port: (server.address() as AddressInfo).port, tls: false };
}

/** Starts an HTTP/1.1 server that collects requests until there are enough. */
async function startCollector(t: ExecutionContext, enough: number, respond: RequestListener) {
  const requests: { readonly text: string; readonly source: string | undefined }[] = [];
  const over = new AbortController();
  const server = createServer((request, response) => {
    const { method, url, headers, socket } = request;
    requests.push({ text: `${method} ${url} ${String(headers["x"])}`, source: socket.remoteAddress });
    respond(request, response);
    if (requests.length === enough) {
      over.abort();
    }
  });
  return { door: await doorOf(t, server), requests, signal: over.signal };
}

test("pipelines complete requests over each connection, from the attacker's addresses", async (t) => {
  const { door, requests, signal } = await startCollector(t, 5_000, (_, response) => response.end("ok"));
  const text = textOf({ method: "GET", path: "/livez", headers: { x: "y" } });
  const counts = await pipeline(door, signal, [repeated(text)], { count: 4, addresses: 2 });
  t.deepEqual([...new Set(requests.map((request) => request.text))], ["GET /livez y"]);
  t.deepEqual(new Set(requests.map(({ source }) => source)), new Set([attackerAddress(0), attackerAddress(1)]));
  t.is(counts["connections opened"], 4);
});

test("leaves responses unread if it is told to", async (t) => {
  // Above what the buffers of a loopback connection hold.
  const bytes = Buffer.alloc(64 * 1024 ** 2);
  const server = createRawServer((socket) => void socket.resume().write(bytes));
  const door = await doorOf(t, server);
  const [over, writes] = [new AbortController(), [Buffer.from("a")]];
  const accepted = once(server, "connection") as Promise<[Socket]>;
  const unread = pipeline(door, over.signal, writes, { count: 1, reads: false });
  const [slow] = await accepted;
  const acceptedNext = once(server, "connection") as Promise<[Socket]>;
  const read = pipeline(door, over.signal, writes, { count: 1 });
  const [fast] = await acceptedNext;
  if (fast.writableLength > 0) {
    await once(fast, "drain");
  }
  t.true(slow.writableLength > 0);
  over.abort();
  t.is((await unread)["received MiB"], 0);
  t.true((await read)["received MiB"]! > 0);
});

test("opens connections again that a server closes, and counts them", async (t) => {
  const over = new AbortController();
  let accepted = 0;
  const server = createRawServer((socket) => {
    accepted++;
    socket.destroy();
    if (accepted === 6) {
      over.abort();
    }
  });
  const counts = await keepOpen(
    await doorOf(t, server),
    over.signal,
    { count: 2 },
    {
      protocol: "http/1.1",
      onOpen: () => undefined,
    },
  );
  t.true(counts.opened >= 6);
  t.true(counts.closed >= 4);
});

test("holds requests open, whose bodies grow by single bytes", async (t) => {
  const over = new AbortController();
  let bytes = "";
  const server = createRawServer((socket) => {
    socket.on("data", (chunk: Buffer) => {
      bytes += String(chunk);
      if (bytes === "{aaa") {
        over.abort();
      }
    });
  });
  const counts = await sendAndWait(await doorOf(t, server), over.signal, Buffer.from("{"), { count: 1 }, 1);
  t.is(counts["requests open"], 1);
  t.is(bytes, "{aaa");
});

test("leaves at the first byte of a response, and comes again", async (t) => {
  const { door, signal } = await startCollector(t, 5, (_, response) => response.write("event"));
  const counts = await openAndLeave(door, signal, Buffer.from(textOf(floodRequests["GET /"]!)), { count: 1 });
  t.like(counts, { "responses left": 4, "of these with status 200": 4 });
});

test("opens another stream for each that ends, and no more than the limit at a time", async (t) => {
  const over = new AbortController();
  let [open, most, served] = [0, 0, 0];
  const server = createHttp2Server().on("stream", (stream, headers) => {
    most = Math.max(most, ++open);
    t.is(headers["x"], "y");
    setImmediate(() => {
      open--;
      stream.respond({ ":status": 200 });
      stream.end("ok");
      if (++served === 500) {
        over.abort();
      }
    });
  });
  const frames = framesOf({ method: "GET", path: "/", headers: { x: "y" } });
  const counts = await openStreams(target, await doorOf(t, server as unknown as Server), over.signal, frames, {
    count: 1,
    streams: 10,
  });
  t.is(most, 10);
  t.true(counts["streams ended"]! >= 480);
  t.is(counts["of these reset"], 0);
});

test("holds streams whose requests have no end", async (t) => {
  const over = new AbortController();
  let begun = 0;
  const server = createHttp2Server().on("stream", (stream) => {
    stream.once("data", (chunk: Buffer) => {
      t.is(String(chunk), "{");
      if (++begun === 20) {
        over.abort();
      }
    });
  });
  const frames = framesOf({ method: "POST", path: "/" }, Buffer.from("{"), false);
  const counts = await openStreams(target, await doorOf(t, server as unknown as Server), over.signal, frames, {
    count: 2,
    streams: 10,
  });
  t.is(counts["streams open"], 20);
});

test("finds frames in bytes that are divided in any way", (t) => {
  const frames = Buffer.concat([
    frameBytes(frameTypes.settings, 0, 0),
    frameBytes(frameTypes.data, 1, 1, Buffer.alloc(300)),
    frameBytes(frameTypes.goAway, 0, 0, Buffer.alloc(8)),
  ]);
  for (const size of [1, 7, 9, 100, frames.length]) {
    const found: string[] = [];
    const scan = createFrameScanner((type, flagBits) => found.push(`${type} ${flagBits}`));
    for (let at = 0; at < frames.length; at += size) {
      scan(frames.subarray(at, at + size));
    }
    t.deepEqual(found, ["4 0", "0 1", "7 0"], `pieces of ${size} bytes`);
  }
});

test("the first bytes of a TLS client are complete: a node responds with its part of the handshake", async (t) => {
  const { port } = await startTlsNode(t);
  const socket = openFrom(t, port, attackerAddress(0));
  socket.write(await clientHello());
  const [flight] = (await once(socket, "data")) as [Buffer];
  const [handshake, serverHello] = [22, 2];
  t.deepEqual([flight[0], flight[5]], [handshake, serverHello]);
});

/** Statuses that the names of the requests promise. Others are 200. */
const statuses: Readonly<Record<string, number>> = {
  "GET of an unknown path": 404,
  "OPTIONS /chain/head": 204,
  "DELETE /livez (405)": 405,
  "POST with a body that is too long (413)": 413,
};

test("floods with requests that a node answers as their names say", async (t) => {
  const { port } = await startMember(t);
  const http2 = await connectRawHttp2(port);
  t.teardown(() => http2.close());
  for (const [name, request] of Object.entries(floodRequests)) {
    const { path, method, headers = {} } = request;
    const expected = statuses[name] ?? 200;
    t.is((await ask(port, path, { method, headers })).status, expected, name);
    const { headers: answered } = await http2.request([
      [":method", method],
      [":scheme", "http"],
      [":authority", "a"],
      [":path", path],
      ...Object.entries(headers),
    ]);
    // Over HTTP/2 a stream that ends without its body is malformed.
    t.is(answered[":status"], "content-length" in headers ? undefined : String(expected), `${name}, HTTP/2`);
  }
});

for (const http of [1, 2] as const) {
  test(`judges all services of a node over HTTP/${http}`, async (t) => {
    const { port } = await startMember(t);
    const { genesisHash: network } = await askJson<{ genesisHash: string }>(port, "/chain/head");
    const judge = startJudge({ port, network, smallProgram: "none", transport: { http, tls: false } });
    t.teardown(() => judge.stop());
    const { services } = await judge.measure(1);
    const { "storage read": invalid, ...others } = services;
    for (const [name, { latencies, sent }] of Object.entries(others)) {
      t.true(sent > 0, name);
      t.is(latencies.length, sent, name);
    }
    t.is(invalid.latencies.length, 0, "only status 200 counts");
    t.is(invalid.sent, services["/livez"].sent);
    const { blocks, lost } = await judge.findIncluded();
    t.is(blocks.length, services.submission.sent);
    t.is(lost, 0);
  });

  test(`the judge's client uses TLS over HTTP/${http}, from the address that is named`, async (t) => {
    const { port } = await startTlsNode(t);
    const send = createClient(port, { http, tls: true });
    for (const isKept of [true, true, false]) {
      const { status } = await send({ path: "/livez", localAddress: attackerAddress(0), timeoutMs: 10_000, isKept });
      t.is(status, 200);
    }
  });
}

test("counts rejections with Retry-After, and nothing of a server that has gone", async (t) => {
  const server = createServer((_, response) => response.writeHead(429, { "Retry-After": "1" }).end());
  const door = await doorOf(t, server);
  const transport = { http: 1, tls: false } as const;
  const judge = startJudge({ port: door.port, network: "", smallProgram: "a", transport });
  t.teardown(() => judge.stop());
  const { services } = await judge.measure(0.3);
  for (const name of bystanders) {
    const { limited, others, sent } = services[name];
    t.is(limited, sent, name);
    t.deepEqual(others, { 429: sent }, name);
    t.is(services[name].latencies.length, 0, name);
  }
  server.close();
  server.closeAllConnections();
  const { services: gone } = await judge.measure(0.3);
  t.deepEqual(
    bystanders.map((name) => gone[name].others),
    bystanders.map((name) => ({ "no response": gone[name].sent })),
  );
});

test("a variant has the options of the node, and the heap that a small container needs", (t) => {
  t.deepEqual(createVariant({}), {
    flags: [],
    env: {},
    memoryMib: 1_024,
    hasSmallHeap: false,
    transport: { http: 1, tls: false },
    name: "",
  });
  const small = createVariant({ workers: "2", edge: "express", memory: 256, http: 2, tls: true });
  t.deepEqual(small, {
    flags: ["--workers", "2", "--edge", "express", "--memory", "256"],
    env: { NODE_OPTIONS: "--max-old-space-size=160", MALLOC_ARENA_MAX: "2" },
    memoryMib: 256,
    hasSmallHeap: true,
    transport: { http: 2, tls: true },
    name: "--workers 2 --edge express --memory 256, HTTP/2, TLS",
  });
});
