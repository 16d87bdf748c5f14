/** Shutdown: requests in flight get a response, and idle connections cause no delay. */
import test, { type ExecutionContext } from "ava";
import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import { HealthService } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { createCertificate } from "../../../src/base/crypto/certificate.js";
import { startTestNode, startTlsNode, type TestNode } from "../../helpers/nodes/start-node.js";
import { startEdgeServer, waitingAnswer } from "../../helpers/nodes/edge-server.js";
import { ask, askJson, openFrom, sessionFrom } from "../../helpers/wire/plain-client.js";
import { testKey } from "../../helpers/chain/keys.js";
import { connectRawHttp2 } from "../../helpers/wire/raw-http2.js";
import { connectRpc } from "../../helpers/wire/rpc-clients.js";
import { until } from "../../helpers/nodes/until.js";

/** Half of the grace period for requests in flight, in milliseconds. */
const alarmMs = 5_000;

async function stopsInTime(t: ExecutionContext, node: Pick<TestNode, "stop">): Promise<void> {
  const alarm = new AbortController();
  const first = await Promise.race([
    node.stop().then(() => "stopped"),
    sleep(alarmMs, "alarm", { signal: alarm.signal }),
  ]);
  alarm.abort();
  t.is(first, "stopped");
}

const get = "GET /version HTTP/1.1\r\nHost: a\r\n\r\n";
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/** Connections that must not delay shutdown, each with the bytes it has sent. */
const idlers: Readonly<Record<string, (t: ExecutionContext, port: number) => Promise<Socket | undefined>>> = {
  "a silent connection": (t, port) => send(t, port, ""),
  "half a request line": (t, port) => send(t, port, "GET /vers"),
  "half of the headers": (t, port) => send(t, port, "GET /version HTTP/1.1\r\nHost: a\r\nX-Mo"),
  "half a preface": (t, port) => send(t, port, preface.slice(0, 10)),
  "a preface without SETTINGS": (t, port) => send(t, port, preface),
  async "an idle connection that is kept"(t, port) {
    const socket = await send(t, port, get);
    await once(socket, "data");
    return socket;
  },
  async "an idle HTTP/2 session"(t, port) {
    const session = sessionFrom(t, port, "127.0.0.1");
    const stream = session.request({ ":method": "GET", ":path": "/version" });
    await once(stream.resume(), "end");
    return undefined;
  },
  async "an HTTP/2 client that reads and says nothing more"(t, port) {
    const connection = await connectRawHttp2(port, { acknowledge: false });
    t.teardown(() => connection.close());
    await until(() => connection.frames.length > 0);
    return connection.socket;
  },
};

async function send(t: ExecutionContext, port: number, text: string): Promise<Socket> {
  const socket = openFrom(t, port, "127.0.0.1");
  await once(socket, "connect");
  if (text !== "") {
    socket.write(text);
    // Wait until the node has read it.
    await askJson(port, "/health");
  }
  return socket;
}

for (const [title, open] of Object.entries(idlers)) {
  test(`does not delay shutdown: ${title}`, async (t) => {
    const node = await startTestNode(t);
    const socket = await open(t, node.port);
    socket?.resume();
    await stopsInTime(t, node);
    await until(() => socket?.closed !== false);
  });
}

/** Opens connections during the TLS handshake, and some over TLS that have sent these bytes. */
async function holdOverTls(
  t: ExecutionContext,
  port: number,
  sent: readonly (readonly [protocol: string, text: string])[],
  credentials: ConnectionOptions,
): Promise<Socket[]> {
  const early = openFrom(t, port, "127.0.0.1");
  await once(early, "connect");
  const halfway = openFrom(t, port, "127.0.0.1");
  await once(halfway, "connect");
  // The header of a TLS record without the client hello.
  halfway.write(Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]));
  const sockets: Socket[] = [early, halfway];
  for (const [protocol, text] of sent) {
    const socket = connectTls({ port, host: "127.0.0.1", ALPNProtocols: [protocol], ...credentials });
    t.teardown(() => socket.destroy());
    sockets.push(socket.on("error", () => undefined));
    await once(socket, "secureConnect");
    if (text !== "") {
      socket.write(text);
    }
    if (text === get) {
      await once(socket, "data");
    }
  }
  sockets.forEach((socket) => socket.resume());
  return sockets;
}

test("does not delay shutdown for TLS handshakes, silent and idle connections", async (t) => {
  const { node, port, ca } = await startTlsNode(t);
  const sent = [
    ["http/1.1", get],
    ["http/1.1", "GET /vers"],
    ["h2", preface],
    ["h2", ""],
  ] as const;
  const sockets = await holdOverTls(t, port, sent, { ca });
  await stopsInTime(t, node);
  await until(() => sockets.every(({ closed }) => closed));
});

test("does not delay shutdown for connections of the port between nodes", async (t) => {
  const node = await startTestNode(t);
  const sent = ["", preface.slice(0, 10), preface].map((text) => ["h2", text] as const);
  const credentials = { ...createCertificate(testKey(9).privateKey), rejectUnauthorized: false };
  const sockets = await holdOverTls(t, node.ports["omni"]!, sent, credentials);
  await stopsInTime(t, node);
  await until(() => sockets.every(({ closed }) => closed));
});

test("does not delay shutdown for a client that starts HTTP/2 after the port has closed", async (t) => {
  const server = await startEdgeServer(t);
  const socket = openFrom(t, server.port, "127.0.0.1");
  await once(socket, "connect");
  await until(() => server.edge.stats().openConnections === 1);
  socket.resume();
  await stopsInTime(t, {
    async stop() {
      const drained = server.drain(60_000);
      socket.write(preface);
      await drained;
    },
  });
});

test("ends streams cleanly at shutdown in each protocol, despite idle connections", async (t) => {
  const node = await startTestNode(t);
  await send(t, node.port, "");
  const ends = await Promise.all(
    (
      [
        ["gRPC", "HTTP/2 by prior knowledge"],
        ["gRPC by Connect", "HTTP/2 by prior knowledge"],
        ["Connect JSON", "HTTP/1.1"],
        ["Connect binary", "HTTP/2 by prior knowledge"],
        ["gRPC-Web", "HTTP/1.1"],
        ["gRPC-Web", "HTTP/2 by prior knowledge"],
      ] as const
    ).map(async ([protocol, transport]) => {
      const client = connectRpc(protocol, transport, node);
      t.teardown(() => client.close());
      const stream = client.stream(HealthService.method.watchHealth, {}, new AbortController().signal);
      const messages = stream[Symbol.asyncIterator]();
      await messages.next();
      return { protocol, transport, end: drained(messages) };
    }),
  );
  await stopsInTime(t, node);
  for (const { protocol, transport, end } of ends) {
    t.is(await end, "ended", `${protocol}, ${transport}`);
  }
});

async function drained(messages: AsyncIterator<unknown>): Promise<string> {
  try {
    while ((await messages.next()).done !== true);
    return "ended";
  } catch (error) {
    return String(error);
  }
}

test("completes requests in flight at shutdown, and rejects new connections", async (t) => {
  const server = await startEdgeServer(t);
  const over1 = ask(server.port, waitingAnswer);
  const session = sessionFrom(t, server.port, "127.0.0.1");
  const stream = session.request({ ":method": "GET", ":path": waitingAnswer });
  const over2 = once(stream, "response");
  const ended = once(stream.resume(), "end");
  await until(() => server.edge.stats().activeRequests === 2);
  let isDrained = false;
  const drained = server.drain(60_000).then(() => (isDrained = true));
  await t.throwsAsync(ask(server.port, "/health"), { code: "ECONNREFUSED" });
  t.false(isDrained);
  server.release();
  t.is((await over1).status, 200);
  t.is((await over1).headers.connection, "close");
  const [headers] = (await over2) as [Record<string, unknown>];
  t.is(headers[":status"], 200);
  await ended;
  await drained;
  await until(() => server.edge.stats().openConnections === 0);
});
