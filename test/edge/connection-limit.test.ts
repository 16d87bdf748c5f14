/** Connection limit: limits connections per address, evicts idle ones, and bans abusive addresses. */
import test, { type ExecutionContext } from "ava";
import { once } from "node:events";
import { constants, type Settings } from "node:http2";
import type { Socket } from "node:net";
import { UsageTracker } from "../../src/edge/address-usage.js";
import { createAddressSet } from "../../src/edge/client-address.js";
import {
  type ConnectionLimits,
  createConnectionLimit,
  defaultBacklog,
  type TrackedConnection,
} from "../../src/edge/connection-limit.js";
import { createEdge } from "../../src/edge/edge.js";
import { arriveOn, openSettings } from "../helpers/nodes/edge-server.js";
import { metricsFlags, readEdgeCounts } from "../helpers/process/prometheus.js";
import { askFrom, firstBytes, openFrom, sessionFrom } from "../helpers/wire/plain-client.js";
import { heapBytes } from "../helpers/process/heap.js";
import { grpcMessage } from "../helpers/wire/http2-frames.js";
import { startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import { until } from "../helpers/nodes/until.js";

const [fullAddress, other, proxy] = ["127.0.0.5", "127.0.0.6", "127.0.0.9"];
const get = "GET /version HTTP/1.1\r\nHost: a\r\n\r\n";

async function start(t: ExecutionContext) {
  const node = await startTestNode(t, {
    ...metricsFlags,
    "rate-limit-exempt": "192.0.2.1",
    "connections-per-address": "5",
    "trusted-proxies": proxy,
  });
  return { node, counts: await readEdgeCounts(node) };
}

/** Sends a request, and waits until the response is complete and the connection is idle. */
async function use(socket: Socket, counts: Awaited<ReturnType<typeof start>>["counts"]): Promise<void> {
  socket.write(get);
  await once(socket, "data");
  await until(async () => (await counts()).inFlight === 0);
}

async function isServed(t: ExecutionContext, { port }: TestNode): Promise<void> {
  t.is((await askFrom(port, "/version", other)).status, 200);
  const sockets = Array.from({ length: 12 }, () => openFrom(t, port, proxy));
  const answers = await Promise.all(
    sockets.map((socket) => {
      socket.write(get);
      return firstBytes(socket);
    }),
  );
  t.true(answers.every((answer) => answer?.startsWith("HTTP/1.1 200 ")));
  sockets.forEach((socket) => socket.destroy());
}

test("closes the longest idle of five connections to admit a sixth", async (t) => {
  const { node, counts } = await start(t);
  const sockets: Socket[] = [];
  for (let i = 0; i < 5; i++) {
    const socket = openFrom(t, node.port, fullAddress);
    sockets.push(socket);
    await use(socket, counts);
  }
  // Use the oldest connection again, so that the second is idle longest.
  await use(sockets[0]!, counts);
  await isServed(t, node);
  t.deepEqual(
    sockets.map(({ closed }) => closed),
    [false, false, false, false, false],
  );
  const sixth = openFrom(t, node.port, fullAddress);
  await use(sixth, counts);
  await until(() => sockets[1]!.closed);
  t.deepEqual(
    sockets.map(({ closed }) => closed),
    [false, true, false, false, false],
  );
  for (const socket of [sockets[0]!, ...sockets.slice(2), sixth]) {
    await use(socket, counts);
  }
});

test("rejects a new connection while all others are busy", async (t) => {
  const { node, counts } = await start(t);
  const sessions = Array.from({ length: 5 }, () => sessionFrom(t, node.port, fullAddress));
  await Promise.all(
    sessions.map(async (session) => {
      const path = "/gatehouse.health.v1.HealthService/WatchHealth";
      const stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc" });
      stream.on("error", () => undefined).end(grpcMessage(Buffer.alloc(0)));
      await once(stream, "data");
    }),
  );
  for (let i = 0; i < 3; i++) {
    const rejected = openFrom(t, node.port, fullAddress);
    rejected.write(get);
    t.is(await firstBytes(rejected), undefined);
  }
  t.is((await counts()).openStreams, 5);
  await isServed(t, node);
  sessions[0]!.destroy();
  await until(async () => (await counts()).openStreams === 4);
  t.is((await askFrom(node.port, "/version", fullAddress)).status, 200);
});

/** Creates a connection limit with a manual clock. */
function create(bounds: Partial<ConnectionLimits> = {}, clock = { nowMs: 0 }) {
  const banned: string[] = [];
  const aborted: string[] = [];
  const connections = createConnectionLimit({
    limits: { total: 1_000, perAddress: 1_000, backlog: defaultBacklog, ...bounds },
    usageTracker: new UsageTracker(),
    isTrustedProxy: createAddressSet(["10.0.0.0/8"]),
    isExempt: createAddressSet(["192.0.2.0/24"]),
    nowMs: () => clock.nowMs,
    onBan: (address) => banned.push(address),
  });
  /** Connects. An aborted connection ends at once. */
  const connect = (address: string, name = address): TrackedConnection | undefined => {
    const connection = connections.connect(address, () => {
      aborted.push(name);
      connection?.end();
    });
    return connection;
  };
  return { clock, banned, aborted, connections, connect };
}

/** Uses up the penalties of an address, and those that are forgiven meanwhile. */
function exhaust(connection: TrackedConnection): void {
  connection.penalize(500);
  connection.penalize(250);
}

test("bans an address for ten seconds, and closes its connections with penalties, after too many of them", (t) => {
  const { clock, banned, aborted, connections, connect } = create();
  const first = connect("198.51.100.1", "first")!;
  const second = connect("198.51.100.1", "second")!;
  const clean = connect("198.51.100.1", "clean")!;
  connect("198.51.100.2", "neighbor");
  second.penalize();
  // The 20 penalties that remain are too few for the next, and enough for those below.
  first.penalize(479);
  t.deepEqual(aborted, []);
  first.penalize(250);
  t.deepEqual(aborted.sort(), ["first", "second"]);
  t.deepEqual(banned, ["198.51.100.1"]);
  t.is(connections.size, 2);
  // New ones are admitted, however many an attacker opens, so that an honest client of the address is answered.
  const opened = Array.from({ length: 10 }, (_, i) => connect("::ffff:198.51.100.1", `new ${i}`)!);
  clock.nowMs = 9_999;
  clean.penalize();
  opened.slice(1).forEach((connection) => connection.penalize());
  t.deepEqual(aborted.slice(2), ["clean", ...Array.from({ length: 9 }, (_, i) => `new ${i + 1}`)]);
  clock.nowMs = 10_000;
  opened[0]!.penalize();
  t.is(aborted.length, 12);
  t.deepEqual(banned, ["198.51.100.1"]);
});

test("counts penalties per address or /64, over all its connections", (t) => {
  const { aborted, banned, connect } = create();
  connect("2001:db8::1")!.penalize(500);
  connect("2001:db8:0:1::1")!.penalize(250);
  t.deepEqual(banned, []);
  connect("2001:db8::2")!.penalize(250);
  t.deepEqual(banned, ["2001:db8::2"]);
  const neighbor = connect("2001:db8:0:1::1", "neighbor")!;
  const [third, fourth] = [connect("2001:db8::3", "third")!, connect("2001:db8::4", "fourth")!];
  neighbor.penalize();
  third.penalize();
  fourth.penalize();
  t.deepEqual(aborted, ["2001:db8::1", "2001:db8::2", "third", "fourth"]);
});

test("closes only the connection of exempt addresses, proxies and Unix sockets, without a ban", (t) => {
  for (const address of ["192.0.2.7", "10.1.2.3", ""]) {
    const { banned, aborted, connect } = create();
    const bad = connect(address, "bad")!;
    connect(address, "good");
    exhaust(bad);
    t.deepEqual([aborted, banned], [["bad"], []], address);
    t.truthy(connect(address), address);
  }
});

test("evicts only connections without any request, and counts proxies for the total limit only", (t) => {
  const { clock, aborted, connections, connect } = create({ total: 3, perAddress: 2 });
  const [one, two] = [connect("a:1::", "one")!, connect("a:1::", "two")!];
  [one, two, two].forEach((connection) => connection.acquire());
  t.is(connect("a:1::"), undefined);
  one.release();
  two.release();
  t.truthy(connect("a:1::", "three"));
  t.deepEqual(aborted, ["one"]);
  for (const name of ["proxy 1", "proxy 2", "proxy 3"]) {
    clock.nowMs++;
    t.truthy(connect("10.0.0.1", name));
  }
  t.deepEqual(aborted, ["one", "three", "proxy 1"]);
  t.is(connections.size, 3);
});

test("closes only one connection if both limits are reached", (t) => {
  const aborted: string[] = [];
  const clock = { nowMs: 0 };
  const { connections } = create({ total: 3, perAddress: 2 }, clock);
  // An aborted connection ends later, as sockets do.
  const connect = (address: string, name: string) => connections.connect(address, () => aborted.push(name));
  for (const [address, name] of [
    ["a:1::", "other"],
    ["a:2::", "one"],
    ["a:2::", "two"],
  ] as const) {
    connect(address, name);
    clock.nowMs++;
  }
  t.truthy(connect("a:2::", "three"));
  t.deepEqual(aborted, ["one"]);
  t.is(connections.size, 3);
  t.truthy(connect("a:3::", "of a third"));
  t.deepEqual(aborted, ["one", "other"]);
  t.truthy(connect("a:1::", "other again"));
  t.deepEqual(aborted, ["one", "other", "two"]);
  // A connection evicted by the total limit no longer counts for its address.
  t.truthy(connect("a:2::", "four"));
  t.is(aborted.length, 4);
  t.deepEqual([aborted[3], connections.size], ["three", 3]);
});

/** Checks that further addresses take no memory once caches are full. `visit` sends a request from an address. */
function isBounded(t: ExecutionContext, visit: (address: string) => void): void {
  const visitAll = (from: number, count: number): void => {
    for (let i = from; i < from + count; i++) {
      visit(`${(i >> 24) + 11}.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`);
    }
  };
  visitAll(0, 60_000);
  const before = heapBytes();
  visitAll(60_000, 200_000);
  const grownMb = (heapBytes() - before) / 1e6;
  t.log(`${grownMb.toFixed(1)} MB more in use after 200,000 further addresses`);
  t.true(grownMb < 10);
}

test("stores nothing for any number of rejected addresses", (t) => {
  const { connect } = create({ total: 1 });
  connect("198.51.100.1")!.acquire();
  isBounded(t, (address) => {
    if (connect(address) !== undefined) {
      t.fail(address);
    }
  });
});

test("limits memory for any number of addresses spoofed through a trusted proxy", (t) => {
  const edge = createEdge({ ...openSettings, trustedProxies: ["10.0.0.0/8"], rateLimitPerMinute: 1 });
  t.teardown(() => edge.stop());
  const proxy = edge.connect("10.0.0.1", () => undefined)!;
  isBounded(t, (address) => {
    const header = (name: string) => (name === "x-forwarded-for" ? `${address}, 10.1.1.1` : undefined);
    edge.admit(arriveOn(proxy, { header, onClose: (listener) => listener() }), "http", undefined).recordOutcome();
  });
  t.is(edge.stats().totalIps, 50_000);
});

test("the more connections an address has, the fewer streams a new one may have", async (t) => {
  const { port } = await startTestNode(t, { "rate-limit-exempt": "192.0.2.1" });
  const streamsOfNext = async (address: string): Promise<number | undefined> => {
    const session = sessionFrom(t, port, address);
    const [settings] = (await once(session, "remoteSettings")) as [Settings];
    return settings.maxConcurrentStreams;
  };
  const limits: (number | undefined)[] = [];
  for (let i = 0; i < 64; i++) {
    limits.push(await streamsOfNext(fullAddress));
  }
  const half = defaultBacklog.perAddressBytes / 8_192 / 2;
  t.deepEqual(
    limits,
    limits.map((_, i) => Math.min(256, Math.floor(half / (i + 1)))),
  );
  t.is(limits[63], 16);
  for (let i = 0; i < 2; i++) {
    t.is(await streamsOfNext(other), 256, "another address");
    t.is(await streamsOfNext(proxy), 256);
  }
});

test("streams beyond the limit are refused, and the others are answered", async (t) => {
  const { port } = await startTestNode(t, { "rate-limit-exempt": "192.0.2.1" });
  const idle = Array.from({ length: 63 }, () => sessionFrom(t, port, fullAddress));
  await Promise.all(idle.map((session) => once(session, "remoteSettings")));
  const session = sessionFrom(t, port, fullAddress);
  // The client does not know the limit yet.
  const codes = await Promise.all(
    Array.from({ length: 40 }, async () => {
      const stream = session.request({ ":path": "/version" });
      stream.on("error", () => undefined).resume();
      await new Promise((resolve) => stream.once("close", resolve));
      return stream.rstCode;
    }),
  );
  t.is(codes.filter((code) => code === constants.NGHTTP2_NO_ERROR).length, 16);
  t.is(codes.filter((code) => code === constants.NGHTTP2_REFUSED_STREAM).length, 24);
});
