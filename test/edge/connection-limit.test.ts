/** Connections: bounded for an address, where the idle make room, and cut where they only do harm. */
import test, { type ExecutionContext } from "ava";
import { once } from "node:events";
import type { Socket } from "node:net";
import { createAddressSet } from "../../src/edge/cidr.js";
import { createUsageTracker } from "../../src/edge/address-usage.js";
import {
  type ConnectionLimits,
  createConnectionLimit,
  type TrackedConnection,
} from "../../src/edge/connection-limit.js";
import { metricsFlags, readEdgeCounts } from "../helpers/process/edge-metrics.js";
import { askFrom, firstBytes, openFrom, sessionFrom } from "../helpers/wire/from-address.js";
import { heapBytes } from "../helpers/process/heap.js";
import { grpcMessage } from "../helpers/wire/http2-frames.js";
import { startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import { until } from "../helpers/nodes/until.js";

const [crowd, other, proxy] = ["127.0.0.5", "127.0.0.6", "127.0.0.9"];
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

/** Asks, and waits for the answer and for the node to have done with it: from then on the connection is idle. */
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

test("the sixth connection takes the place of the one that is idle for longest", async (t) => {
  const { node, counts } = await start(t);
  const sockets: Socket[] = [];
  for (let i = 0; i < 5; i++) {
    const socket = openFrom(t, node.port, crowd);
    sockets.push(socket);
    await use(socket, counts);
  }
  // The oldest is used again, so that the second is idle for longest.
  await use(sockets[0]!, counts);
  await isServed(t, node);
  t.deepEqual(
    sockets.map(({ closed }) => closed),
    [false, false, false, false, false],
  );
  const sixth = openFrom(t, node.port, crowd);
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

test("where all are busy, the next is closed without an answer, until one of them ends", async (t) => {
  const { node, counts } = await start(t);
  const sessions = Array.from({ length: 5 }, () => sessionFrom(t, node.port, crowd));
  await Promise.all(
    sessions.map(async (session) => {
      const path = "/gatehouse.health.v1.HealthService/WatchHealth";
      const stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc" });
      stream.on("error", () => undefined).end(grpcMessage(Buffer.alloc(0)));
      await once(stream, "data");
    }),
  );
  for (let i = 0; i < 3; i++) {
    const turnedAway = openFrom(t, node.port, crowd);
    turnedAway.write(get);
    t.is(await firstBytes(turnedAway), undefined);
  }
  t.is((await counts()).openStreams, 5);
  await isServed(t, node);
  sessions[0]!.destroy();
  await until(async () => (await counts()).openStreams === 4);
  t.is((await askFrom(node.port, "/version", crowd)).status, 200);
});

/** Connections on a clock that stands still. */
function create(bounds: Partial<ConnectionLimits> = {}, clock = { nowMs: 0 }) {
  const shutOut: string[] = [];
  const cut: string[] = [];
  const connections = createConnectionLimit({
    limits: { total: 1_000, perAddress: 1_000, ...bounds },
    usageTracker: createUsageTracker(),
    isTrustedProxy: createAddressSet(["10.0.0.0/8"]),
    isExempt: createAddressSet(["192.0.2.0/24"]),
    nowMs: () => clock.nowMs,
    onBan: (address) => shutOut.push(address),
  });
  /** Connects; what is cut is closed, as sockets are. */
  const connect = (address: string, name = address): TrackedConnection | undefined => {
    const connection = connections.connect(address, () => {
      cut.push(name);
      connection?.end();
    });
    return connection;
  };
  return { clock, shutOut, cut, connections, connect };
}

/** As many as an address has at once, and then far more than come back meanwhile. */
function exhaust(connection: TrackedConnection): void {
  connection.penalize(500);
  connection.penalize(250);
}

test("one who used up his strikes is cut and shut out for ten seconds, with all his connections", (t) => {
  const { clock, shutOut, cut, connections, connect } = create();
  const first = connect("198.51.100.1", "first")!;
  connect("198.51.100.1", "second");
  connect("198.51.100.2", "neighbor");
  first.penalize(500);
  t.deepEqual(cut, []);
  first.penalize(250);
  t.deepEqual(cut.sort(), ["first", "second"]);
  t.deepEqual(shutOut, ["198.51.100.1"]);
  t.is(connections.size, 1);
  t.is(connect("198.51.100.1"), undefined);
  t.is(connect("::ffff:198.51.100.1"), undefined);
  t.truthy(connect("198.51.100.2"));
  clock.nowMs = 9_999;
  t.is(connect("198.51.100.1"), undefined);
  clock.nowMs = 10_000;
  t.truthy(connect("198.51.100.1"));
});

test("strikes are counted for an address, or a /64, over all its connections", (t) => {
  const { shutOut, connect } = create();
  connect("2001:db8::1")!.penalize(500);
  connect("2001:db8:0:1::1")!.penalize(250);
  t.deepEqual(shutOut, []);
  connect("2001:db8::2")!.penalize(250);
  t.deepEqual(shutOut, ["2001:db8::2"]);
  t.is(connect("2001:db8::3"), undefined);
  t.truthy(connect("2001:db8:0:1::1"));
});

test("exempt addresses, proxies and Unix sockets lose the one connection, and are not shut out", (t) => {
  for (const address of ["192.0.2.7", "10.1.2.3", ""]) {
    const { shutOut, cut, connect } = create();
    const bad = connect(address, "bad")!;
    connect(address, "good");
    exhaust(bad);
    t.deepEqual([cut, shutOut], [["bad"], []], address);
    t.truthy(connect(address), address);
  }
});

test("connections: who makes room, and who has none", (t) => {
  const { clock, cut, connections, connect } = create({ total: 4, perAddress: 2 });
  const [one, two] = [connect("a:1::", "one")!, connect("a:1::", "two")!];
  one.acquire();
  two.acquire();
  t.is(connect("a:1::"), undefined);
  clock.nowMs = 1;
  one.release();
  clock.nowMs = 2;
  two.acquire();
  two.release();
  // Another request is still under way on it.
  t.truthy(connect("a:1::", "three"));
  t.deepEqual(cut, ["one"]);
  clock.nowMs = 3;
  // Proxies take part in the bound of all, but have none of their own.
  t.truthy(connect("10.0.0.1", "proxy 1"));
  clock.nowMs = 4;
  t.truthy(connect("10.0.0.1", "proxy 2"));
  t.is(connections.size, 4);
  clock.nowMs = 5;
  t.truthy(connect("10.0.0.1", "proxy 3"));
  t.deepEqual(cut, ["one", "three"]);
  t.truthy(connect("198.51.100.1", "four"));
  t.deepEqual(cut, ["one", "three", "proxy 1"]);
  t.is(connections.size, 4);
});

test("where both bounds are reached, one new connection closes one other", (t) => {
  const cut: string[] = [];
  const clock = { nowMs: 0 };
  const { connections } = create({ total: 3, perAddress: 2 }, clock);
  // What is cut ends later, as sockets do.
  const connect = (address: string, name: string) => connections.connect(address, () => cut.push(name));
  for (const [address, name] of [
    ["a:1::", "other"],
    ["a:2::", "one"],
    ["a:2::", "two"],
  ] as const) {
    connect(address, name);
    clock.nowMs++;
  }
  t.truthy(connect("a:2::", "three"));
  t.deepEqual(cut, ["one"]);
  t.is(connections.size, 3);
  t.truthy(connect("a:3::", "of a third"));
  t.deepEqual(cut, ["one", "other"]);
  t.truthy(connect("a:1::", "other again"));
  t.deepEqual(cut, ["one", "other", "two"]);
  // What the bound in total has closed is none of the address any more.
  t.truthy(connect("a:2::", "four"));
  t.is(cut.length, 4);
  t.deepEqual([cut[3], connections.size], ["three", 3]);
});

test("addresses without number that are turned away leave nothing behind", (t) => {
  const { connect } = create({ total: 1 });
  connect("198.51.100.1")!.acquire();
  // Far more than a set remembers of addresses by itself.
  const turnAway = (from: number, count: number): void => {
    for (let i = from; i < from + count; i++) {
      t.is(connect(`${(i >> 24) + 11}.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`), undefined);
    }
  };
  turnAway(0, 20_000);
  const before = heapBytes();
  turnAway(20_000, 100_000);
  const grownMb = (heapBytes() - before) / 1e6;
  t.log(`${grownMb.toFixed(1)} MB more in use after 100,000 further addresses`);
  t.true(grownMb < 10);
});
