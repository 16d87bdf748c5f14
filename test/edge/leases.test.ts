/** Disconnects at every stage of a request release its slot, its bytes and its connection. */
import test, { type ExecutionContext } from "ava";
import { once } from "node:events";
import { type ClientHttp2Stream, connect, constants } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { metricsFlags, parseMetrics, readEdgeCounts } from "../helpers/process/prometheus.js";
import { type EdgeServer, startEdgeServer, waitingAnswer } from "../helpers/nodes/edge-server.js";
import { ask, askJson, openFrom } from "../helpers/wire/plain-client.js";
import { grpcFields } from "../helpers/wire/grpc-exchange.js";
import { grpcMessage } from "../helpers/wire/http2-frames.js";
import { connectRawHttp2 } from "../helpers/wire/raw-http2.js";
import { startMember } from "../helpers/nodes/start-node.js";
import { until } from "../helpers/nodes/until.js";

const address = "127.0.0.5";
const isEmpty = ({ edge }: EdgeServer): boolean => {
  const { activeRequests, openStreams, openConnections, unansweredRequests, reservedBytes } = edge.stats();
  return activeRequests + openStreams + openConnections + unansweredRequests + reservedBytes === 0;
};

const rpc = "/gatehouse.zk.v1.ZkService/GetMerkleRoot";
const watch = "/gatehouse.health.v1.HealthService/WatchHealth";
const unary = { ":method": "POST", ":path": rpc, "content-type": "application/grpc", te: "trailers" };

/** Requests that stay open, several of each kind, on separate connections or on one HTTP/2 connection. */
interface Kind {
  readonly title: string;
  /** Text of an HTTP/1.1 request, or headers and body of a stream; without an end if incomplete. */
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  readonly isUnended?: boolean;
  readonly isStream?: boolean;
}

const head = (path: string, more = ""): string => `POST ${path} HTTP/1.1\r\nHost: a\r\n${more}`;
const json = "Content-Type: application/json\r\n";
const empty = grpcMessage(Buffer.alloc(0));
const connectStream = { ":method": "POST", ":path": watch, "content-type": "application/connect+json" };
const emptyJson = grpcMessage(Buffer.from("{}"));

const kinds: readonly Kind[] = [
  { title: "JSON, HTTP/1.1, in mid-answer", text: `GET ${waitingAnswer} HTTP/1.1\r\nHost: a\r\n\r\n` },
  { title: "Connect, HTTP/1.1, in mid-answer", text: head(rpc, `${json}Content-Length: 2\r\n\r\n{}`) },
  { title: "JSON-RPC, HTTP/1.1, in mid-body", text: head("/", `${json}Content-Length: 1000\r\n\r\n{"jsonrpc"`) },
  { title: "Connect, HTTP/1.1, in mid-body", text: head(rpc, `${json}Content-Length: 1000\r\n\r\n{`) },
  {
    title: "Connect stream, HTTP/1.1",
    isStream: true,
    text: head(
      watch,
      `Content-Type: application/connect+json\r\nContent-Length: 7\r\n\r\n${emptyJson.toString("latin1")}`,
    ),
  },
  { title: "JSON, HTTP/2, in mid-answer", headers: { ":method": "GET", ":path": waitingAnswer } },
  { title: "gRPC in mid-answer", headers: unary, body: empty },
  { title: "gRPC in mid-body", headers: unary, body: empty.subarray(0, 3), isUnended: true },
  {
    title: "gRPC-Web in mid-body",
    headers: { ...unary, "content-type": "application/grpc-web" },
    body: empty.subarray(0, 3),
    isUnended: true,
  },
  { title: "gRPC stream", isStream: true, headers: { ...unary, ":path": watch }, body: empty },
  {
    title: "gRPC-Web stream",
    isStream: true,
    headers: { ...unary, ":path": watch, "content-type": "application/grpc-web" },
    body: empty,
  },
  { title: "Connect stream, HTTP/2", isStream: true, headers: connectStream, body: emptyJson },
];

const each = 10;

const bodyBytes = ({ body, text = "" }: Kind): number => body?.length ?? text.length - text.indexOf("\r\n\r\n") - 4;

/** Ways to disconnect, by name. */
type Leave = Readonly<Record<string, () => void>>;

/** Sends the requests, and returns the ways to disconnect from them. */
function begin(t: ExecutionContext, { port }: EdgeServer, kind: Kind): Leave {
  if (kind.text !== undefined) {
    const sockets = Array.from({ length: each }, () => openFrom(t, port, address));
    sockets.forEach((socket) => socket.resume().write(kind.text!, "latin1"));
    return {
      "cut off": () => sockets.forEach((socket) => socket.resetAndDestroy()),
      closed: () => sockets.forEach((socket) => socket.destroy()),
    };
  }
  const socket = openFrom(t, port, address);
  const session = connect("http://127.0.0.1", { createConnection: () => socket }).on("error", () => undefined);
  const streams = Array.from({ length: each }, (): ClientHttp2Stream => {
    const stream = session.request(kind.headers, { endStream: kind.body === undefined });
    if (kind.body !== undefined) {
      stream.write(kind.body);
    }
    if (kind.body !== undefined && kind.isUnended !== true) {
      stream.end();
    }
    return stream.on("error", () => undefined).resume();
  });
  return {
    "cut off": () => socket.resetAndDestroy(),
    closed: () => session.destroy(),
    cancelled: () => {
      streams.forEach((stream) => stream.close(constants.NGHTTP2_CANCEL));
      session.close();
    },
  };
}

for (const kind of kinds) {
  test(`${kind.title}: releases everything when the client disconnects`, async (t) => {
    const server = await startEdgeServer(t);
    // A destroyed Node.js session ends its streams first, so that their requests count as complete.
    const closed = kind.isUnended ? [] : ["closed"];
    const ways = ["cut off", ...closed, ...(kind.text === undefined ? ["cancelled"] : [])];
    for (const way of ways) {
      const leave = begin(t, server, kind);
      await until(() => {
        const { activeRequests, openStreams, reservedBytes } = server.edge.stats();
        // A request occupies no slot before its body is complete.
        if (kind.title.endsWith("in mid-body")) {
          return activeRequests === 0 && reservedBytes === each * bodyBytes(kind);
        }
        return (kind.isStream ? openStreams : activeRequests) === each;
      }, `${way}: all are under way`);
      leave[way]!();
      await until(() => isEmpty(server), `${way}: nothing is left`);
    }
    await until(() => server.outcomes.length === ways.length * each);
    // Node.js reports the end of a body before the reset of its stream, so the node may process the body.
    const isJudged = kind.isUnended === true;
    t.deepEqual(
      server.outcomes.filter((code) => code !== "CANCELLED" && !(isJudged && code === "INVALID_REQUEST")),
      [],
    );
    t.deepEqual(server.errors, []);
    t.is((await ask(server.port, "/health")).status, 200);
  });
}

test("ends all streams of an HTTP/2 client that sends GOAWAY and closes its half", async (t) => {
  const server = await startEdgeServer(t);
  const connection = await connectRawHttp2(server.port);
  t.teardown(() => connection.close());
  const streamId = connection.open(grpcFields(watch));
  connection.data(streamId, empty, { endStream: true });
  await until(() => connection.received(streamId).bodyBytes > 0);
  t.is(server.edge.stats().openStreams, 1);
  connection.goAway();
  connection.socket.end();
  await until(() => isEmpty(server));
  t.pass();
});

test("logs one line per second for canceled requests, and counts the others", async (t) => {
  const server = await startEdgeServer(t);
  const startedMs = Date.now();
  const count = 300;
  for (let left = 0; left < count; left += 100) {
    const sockets = Array.from({ length: 100 }, () => openFrom(t, server.port, address));
    sockets.forEach((socket) => socket.write(`GET ${waitingAnswer} HTTP/1.1\r\nHost: a\r\n\r\n`));
    await until(() => server.edge.stats().activeRequests === 100);
    sockets.forEach((socket) => socket.destroy());
    await until(() => isEmpty(server));
  }
  const seconds = Math.floor(Date.now() / 1000) - Math.floor(startedMs / 1000) + 1;
  t.true(server.access.length >= 1 && server.access.length <= seconds, `${server.access.length} lines in ${seconds} s`);
  // The next line, in a later second, states the number of requests without a line.
  await sleep(1_000 - (Date.now() % 1000) + 5);
  const last = openFrom(t, server.port, address);
  last.write(`GET ${waitingAnswer} HTTP/1.1\r\nHost: a\r\n\r\n`);
  await until(() => server.edge.stats().activeRequests === 1);
  last.destroy();
  await until(() => isEmpty(server));
  t.deepEqual(new Set(server.access.map(({ code }) => code)), new Set(["CANCELLED"]));
  t.is(
    server.access.reduce((sum, { unlogged = 0 }) => sum + 1 + unlogged, 0),
    count + 1,
  );
});

test("has no request in flight after 2,000 MCP clients disconnected during a call", async (t) => {
  const node = await startMember(t, { ...metricsFlags, "mcp-enabled": true, "mcp-port": "0" });
  const counts = await readEdgeCounts(node);
  const { ports } = await askJson<{ ports: Record<string, { actual: number }> }>(node.port, "/health");
  const params = { name: "storage_searchPrograms", arguments: { q: "large" } };
  const call = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
  const types = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
  const text = `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n${types}Content-Length: ${call.length}\r\n\r\n${call}`;
  for (let portion = 0; portion < 20; portion++) {
    await Promise.all(
      Array.from({ length: 100 }, async (_, i) => {
        const socket = openFrom(t, ports["mcp"]!.actual, "127.0.0.1");
        socket.write(text);
        await once(socket, "connect");
        // Disconnect each client in another of the first ticks after its request was read.
        await sleep(i % 8);
        socket.destroy();
      }),
    );
  }
  await until(async () => {
    const { inFlight, openConnections } = await counts();
    return inFlight === 0 && openConnections === 0;
  });
  const metrics = (await ask(ports["metrics"]!.actual, "/metrics")).text;
  const left = parseMetrics(metrics).value("gatehouse_requests_total", cancelled) ?? 0;
  t.log(`${left} left in mid-call`);
  t.true(left > 0, "nobody left in mid-call: this tests nothing");
  t.is((await askJson<{ errors: Record<string, unknown> }>(node.port, "/health")).errors["uncaught_total"], 0);
});

/** Metric labels of canceled tool calls. */
const cancelled = { protocol: "mcp", rpc: "gatehouse.storage.v1.StorageService/SearchPrograms", code: "CANCELLED" };
