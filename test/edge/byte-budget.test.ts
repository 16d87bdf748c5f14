/** Byte budget: limits unread responses, releases their bytes, and aborts slow readers. */
import { create, toBinary } from "@bufbuild/protobuf";
import test, { type ExecutionContext } from "ava";
import type { IncomingHttpHeaders } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { StorageService } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { ZkService } from "../../gen/gatehouse/zk/v1/zk_pb.js";
import { createEdge } from "../../src/edge/edge.js";
import { type ByteLimits, defaultBytes } from "../../src/edge/request-permit.js";
import { type Reason, RpcError } from "../../src/rpc/errors.js";
import type { Connection, Permit } from "../../src/rpc/gate.js";
import { metricsFlags, readEdgeCounts } from "../helpers/process/prometheus.js";
import {
  arriveOn,
  type EdgeServer,
  largeAnswer,
  numberedHash,
  openSettings,
  startEdgeServer,
} from "../helpers/nodes/edge-server.js";
import { ask, askJson, openFrom, sessionFrom } from "../helpers/wire/plain-client.js";
import { grpcMessage, settingIds } from "../helpers/wire/http2-frames.js";
import { connectRawHttp2 } from "../helpers/wire/raw-http2.js";
import { connectRpc, readFailure } from "../helpers/wire/rpc-clients.js";
import { startMember } from "../helpers/nodes/start-node.js";
import { storeProgram } from "../helpers/chain/submit.js";
import { until } from "../helpers/nodes/until.js";
import type { TransportName } from "../helpers/wire/transports.js";

const mib = 1024 * 1024;

const unit = 10_000;
const bounds: ByteLimits = {
  perConnectionBytes: 2 * unit,
  perAddressBytes: 3 * unit,
  totalBytes: 5 * unit,
  extraBytes: unit,
  graceMs: 0,
  minBytesPerS: 1_000,
};

function isRefused(t: ExecutionContext, take: () => void, reason: Reason = "RATE_LIMITED"): void {
  const failure = t.throws(take, { instanceOf: RpcError });
  t.is(failure.reason, reason);
  t.is(failure.retryAfterS, 1);
}

/** Creates an edge with these limits, and functions that connect and send requests. */
function createHolders(t: ExecutionContext, bytes = bounds) {
  const edge = createEdge({ ...openSettings, bytes });
  t.teardown(() => edge.stop());
  const connect = (address: string): Connection => edge.connect(address, () => undefined)!;
  const admit = (connection: Connection, abort?: () => void): Permit =>
    edge.admit(arriveOn(connection, abort && { abort }), "http", undefined);
  return { edge, connect, admit };
}

test("limits bytes per connection, per address and in total, with extra capacity for small responses", (t) => {
  const { edge, connect, admit } = createHolders(t);
  const connection = connect("192.0.2.1");
  const [one, sameConnection] = [admit(connection), admit(connection)];
  const [sameAddress, thirdOfAddress] = [admit(connect("192.0.2.1")), admit(connect("192.0.2.1"))];
  const [two, three] = [admit(connect("192.0.2.2")), admit(connect("192.0.2.3"))];
  one.reserveRequestBytes(2 * unit);
  isRefused(t, () => one.reserveRequestBytes(1));
  isRefused(t, () => sameConnection.reserveResponseBytes(1));
  sameAddress.reserveResponseBytes(unit);
  isRefused(t, () => thirdOfAddress.reserveResponseBytes(1));
  two.reserveRequestBytes(2 * unit);
  t.is(edge.stats().reservedBytes, 5 * unit);
  isRefused(t, () => three.reserveResponseBytes(8 * 1024 + 1), "OVERLOADED");
  three.reserveResponseBytes(8 * 1024);
  isRefused(t, () => three.reserveResponseBytes(8 * 1024), "OVERLOADED");
  // A rejected reservation is counted nowhere.
  t.is(edge.stats().reservedBytes, 5 * unit + 8 * 1024);
  [one, sameConnection, sameAddress, thirdOfAddress, two, three].forEach((permit) => permit.release());
  t.is(edge.stats().reservedBytes, 0);
  admit(connection).reserveResponseBytes(2 * unit);
});

test("rejects requests of a caller that has reserved more than half of its limit", (t) => {
  const { connect, admit } = createHolders(t);
  const [connection, neighbor] = [connect("192.0.2.1"), connect("192.0.2.1")];
  const [permit, neighborPermit] = [admit(connection), admit(neighbor)];
  permit.reserveRequestBytes(unit);
  t.notThrows(() => admit(connection));
  permit.reserveRequestBytes(1);
  isRefused(t, () => admit(connection));
  t.notThrows(() => admit(neighbor));
  neighborPermit.reserveRequestBytes(unit / 2);
  isRefused(t, () => admit(neighbor));
  t.notThrows(() => admit(connect("192.0.2.2")));
});

test("aborts each slow reader once, for any order of starts, progress and ends", async (t) => {
  const { connect, admit } = createHolders(t, { ...defaultBytes, graceMs: 1 });
  const aborted: string[] = [];
  const orders = ["012", "021", "102", "120", "201", "210"];
  for (const order of orders) {
    const start = (name: string): Permit => admit(connect("192.0.2.1"), () => aborted.push(`${name} of ${order}`));
    const permits = [start("ended"), start("patient"), start("slow")] as const;
    for (const i of order) {
      // The time to read grows with the size.
      permits[Number(i) as 0].reserveResponseBytes(i === "1" ? 1_000_000 : 10);
    }
    const empty = start("empty");
    empty.reserveResponseBytes(0);
    for (const permit of [empty, permits[0]]) {
      permit.recordOutcome();
      permit.release();
    }
  }
  await until(() => aborted.length >= orders.length);
  // The next sweep finds only requests whose first sweep has passed.
  admit(connect("192.0.2.2"), () => aborted.push("last")).reserveResponseBytes(10);
  await until(() => aborted.includes("last"));
  t.deepEqual(aborted.sort(), ["last", ...orders.map((order) => `slow of ${order}`)].sort());
});

/** Byte limits for tests over sockets. */
const small: ByteLimits = {
  perConnectionBytes: 16 * mib,
  perAddressBytes: 32 * mib,
  totalBytes: 64 * mib,
  extraBytes: mib,
  graceMs: 100,
  minBytesPerS: 1024 * mib,
};

const nothingHeld = ({ edge }: EdgeServer): boolean => {
  const { activeRequests, reservedBytes, openConnections } = edge.stats();
  return activeRequests === 0 && reservedBytes === 0 && openConnections === 0;
};

/** Checks that each protocol rejects a response over the limit, sends a smaller one, and then reserves no bytes. */
async function checkRefusals(
  t: ExecutionContext,
  server: EdgeServer,
  transport: TransportName,
  protocols: readonly Parameters<typeof connectRpc>[0][],
): Promise<void> {
  for (const protocol of protocols) {
    const client = connectRpc(protocol, transport, server);
    t.teardown(() => client.close());
    const call = client.call(ZkService.method.getNullifier, { nullifierHash: numberedHash(2 * mib) });
    const error = await call.then(() => undefined, readFailure);
    t.like(error, { code: 8, reason: "RATE_LIMITED" }, protocol);
    t.truthy(await client.call(ZkService.method.getNullifier, { nullifierHash: numberedHash(mib / 2) }), protocol);
    await client.close();
  }
  await until(() => nothingHeld(server));
  t.deepEqual(server.errors, []);
}

for (const first of ["compiled", "express"] as const) {
  test(`disconnects an HTTP/1.1 client that does not read, and releases its bytes, ${first} first`, async (t) => {
    // More than fits into the buffers of the system.
    const sizeBytes = 15 * mib;
    const server = await startEdgeServer(t, { bytes: small }, first);
    const socket = openFrom(t, server.port, "127.0.0.5").pause();
    socket.write(`GET ${largeAnswer(sizeBytes)} HTTP/1.1\r\nHost: a\r\n\r\n`);
    await until(() => server.edge.stats().reservedBytes >= sizeBytes);
    t.is(server.edge.stats().activeRequests, 1);
    await until(() => nothingHeld(server));
    t.true(socket.bytesRead < sizeBytes);
    t.deepEqual(server.outcomes, ["OK"]);
  });

  test(`rejects a response that exceeds the limit before its first byte, over HTTP/1.1, ${first} first`, async (t) => {
    const server = await startEdgeServer(t, { bytes: { ...small, graceMs: 60_000, perConnectionBytes: mib } }, first);
    await checkRefusals(t, server, "HTTP/1.1", ["Connect JSON", "Connect binary", "gRPC-Web"]);
  });
}

test("resets an HTTP/2 stream with a closed window, but not other streams of the connection", async (t) => {
  const server = await startEdgeServer(t, { bytes: small });
  const session = sessionFrom(t, server.port, "127.0.0.5", { initialWindowSize: 0 });
  const readers = [largeAnswer(mib), "/gatehouse.zk.v1.ZkService/GetNullifier"].map((path) => {
    const isRpc = path.startsWith("/gatehouse");
    const fields = isRpc ? { ":method": "POST", "content-type": "application/grpc" } : { ":method": "GET" };
    const stream = session.request({ ...fields, ":path": path }, { endStream: !isRpc }).on("error", () => undefined);
    if (isRpc) {
      const size = Buffer.from(numberedHash(mib));
      stream.end(grpcMessage(Buffer.concat([Buffer.from([0x0a, size.length]), size])));
    }
    return stream;
  });
  const held = session.request({ ":method": "GET", ":path": "/zk/merkle-root" }).on("error", () => undefined);
  await until(() => server.edge.stats().reservedBytes >= 2 * mib);
  await until(() => readers.every(({ closed }) => closed));
  await until(() => server.edge.stats().reservedBytes === 0);
  t.deepEqual([server.edge.stats().activeRequests, held.closed, session.closed], [1, false, false]);
  session.destroy();
  await until(() => nothingHeld(server));
  t.deepEqual([...server.outcomes].sort(), ["CANCELLED", "OK", "OK"]);
});

test("rejects a response that exceeds the limit before its first byte, in JSON and in gRPC", async (t) => {
  const server = await startEdgeServer(t, { bytes: { ...small, graceMs: 60_000, perConnectionBytes: mib } });
  const { status, text, headers } = await ask(server.port, largeAnswer(2 * mib));
  t.is(status, 429);
  t.is(headers["retry-after"], "1");
  t.like(JSON.parse(text), { success: false, errorCode: "RATE_LIMITED", retryAfter: 1 });
  const protocols = ["gRPC", "gRPC by Connect", "Connect JSON", "Connect binary", "gRPC-Web"] as const;
  await checkRefusals(t, server, "HTTP/2 by prior knowledge", protocols);
});

test("sends the full response to a slow reader above the minimum speed", async (t) => {
  const [sizeBytes, stepBytes] = [2 * mib, 60_000];
  const server = await startEdgeServer(t, { bytes: { ...small, minBytesPerS: 64 * 1024 } });
  const connection = await connectRawHttp2(server.port, {
    replenish: false,
    settings: { [settingIds.initialWindow]: 0 },
  });
  t.teardown(() => connection.close());
  const path = largeAnswer(sizeBytes);
  const fields = [
    [":method", "GET"],
    [":scheme", "http"],
    [":path", path],
    [":authority", "a"],
  ] as const;
  const streamId = connection.open(fields, { endStream: true });
  await until(() => server.edge.stats().reservedBytes > sizeBytes);
  // The sweep for slow readers runs once per second, so the client reads once or twice before it.
  for (let openedBytes = 0; openedBytes < sizeBytes + stepBytes; openedBytes += stepBytes) {
    connection.windowUpdate(0, stepBytes);
    connection.windowUpdate(streamId, stepBytes);
    await sleep(60);
  }
  const { end, body } = await connection.answer(streamId);
  t.is(end, "stream");
  t.true(body.length > sizeBytes);
  t.deepEqual(server.outcomes, ["OK"]);
  await until(() => server.edge.stats().reservedBytes === 0);
});

test("responds to probes while large responses use the full budget", async (t) => {
  const [largeBytes, patientMs] = [900_000, 600_000];
  const server = await startEdgeServer(t, { bytes: { ...small, totalBytes: 2 * mib, graceMs: patientMs } });
  const readers = ["127.0.0.5", "127.0.0.6"].map((address) => {
    const session = sessionFrom(t, server.port, address, { initialWindowSize: 0 });
    session.request({ ":method": "GET", ":path": largeAnswer(largeBytes) }).on("error", () => undefined);
    return session;
  });
  await until(() => server.edge.stats().reservedBytes >= 2 * largeBytes);
  t.is((await ask(server.port, largeAnswer(largeBytes))).status, 503);
  t.is((await ask(server.port, "/health")).status, 200);
  t.is((await ask(server.port, largeAnswer(1_000))).status, 200);
  readers[0]!.destroy();
  await until(() => server.edge.stats().reservedBytes < 2 * largeBytes);
  t.is((await ask(server.port, largeAnswer(largeBytes))).status, 200);
});

test("limits the bytes of 1,000 clients from 20 addresses that do not read a response of 1 MiB", async (t) => {
  const node = await startMember(t, { ...metricsFlags, "rate-limit": "0" });
  const { address } = await storeProgram(t, node, "large", JSON.stringify({ text: "a".repeat(1_000_000) }));
  const counts = await readEdgeCounts(node);
  let [ended, overloaded, highestBytes] = [0, 0, 0];
  // All requests share the bytes of the first response, but each has its own bytes of the second.
  const json = { ":method": "GET", ":path": `/storage-program/${address}/all` };
  const web = {
    ":method": "POST",
    ":path": "/gatehouse.storage.v1.StorageService/GetProgramData",
    "content-type": "application/grpc-web-text",
  };
  const { input } = StorageService.method.getProgramData;
  const message = grpcMessage(toBinary(input, create(input, { storageAddress: address }))).toString("base64");
  const sessions = Array.from({ length: 20 }, (_, i) =>
    sessionFrom(t, node.port, `127.0.0.${20 + i}`, { initialWindowSize: 0 }),
  );
  let started = 0;
  for (let round = 0; round < 50; round++) {
    for (const session of sessions) {
      const isJson = round % 2 === 0;
      const stream = session.request(isJson ? json : web, { endStream: isJson });
      if (!isJson) {
        stream.end(message);
      }
      stream
        .on("error", () => undefined)
        .once("response", ({ ":status": status }: IncomingHttpHeaders) => {
          started++;
          overloaded += Number(status) === 503 ? 1 : 0;
        });
      stream.once("close", () => ended++);
    }
    highestBytes = Math.max(highestBytes, (await counts()).heldBytes);
  }
  await until(async () => {
    highestBytes = Math.max(highestBytes, (await counts()).heldBytes);
    return started + ended >= 1_000;
  });
  t.log(`${(highestBytes / mib).toFixed(1)} MiB held at most; ${overloaded} refused, ${ended} ended`);
  t.true(highestBytes <= defaultBytes.totalBytes + defaultBytes.extraBytes);
  t.true(highestBytes > defaultBytes.totalBytes / 2 && overloaded > 0, "there was room for all of it");
  t.is((await askJson<{ status: string }>(node.port, "/health")).status, "ok");
  sessions.forEach((session) => session.destroy());
  await until(async () => {
    const { heldBytes, inFlight } = await counts();
    return heldBytes === 0 && inFlight === 0;
  });
});
