import test from "ava";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { ZkService } from "../../gen/gatehouse/zk/v1/zk_pb.js";
import { HealthService } from "../../gen/gatehouse/health/v1/health_pb.js";
import { createEdge } from "../../src/edge/edge.js";
import { createOverload } from "../../src/edge/overload.js";
import { createRpcServer } from "../../src/rpc/server/rpc-server.js";
import { serve } from "../../src/rpc/service.js";
import { compiledFirst, largeAnswer, openSettings, startEdgeServer } from "../helpers/nodes/edge-server.js";
import { sessionFrom } from "../helpers/wire/from-address.js";
import { ask } from "../helpers/wire/plain-client.js";
import { connectEach, readFailure, rpcProtocols } from "../helpers/wire/rpc-clients.js";
import { until } from "../helpers/nodes/until.js";

test("rejects requests above the limit in every protocol, but serves probes", async (t) => {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  const edge = createEdge({
    ...openSettings,
    overload: { maxInFlight: 3, maxInFlightPerAddress: 3, maxLagMs: 60_000 },
  });
  t.teardown(() => edge.stop());
  const slow = async (): Promise<object> => {
    await released;
    return {};
  };
  const never = (): never => {
    throw new Error("not called");
  };
  const health = {
    getHealth: () => ({}),
    listSubsystems: never,
    getLiveness: never,
    getReadiness: never,
    watchHealth: never,
  };
  const server = createRpcServer(
    {
      services: [
        serve(ZkService, { getMerkleRoot: slow, getMerkleProof: never, getNullifier: never }),
        serve(HealthService, health),
      ],
      gate: edge,
      nodeCall: () => Promise.resolve("null"),
      info: { title: "test", version: "0" },
      onInternalError: (error) => t.fail(String(error)),
    },
    compiledFirst,
  );
  const port = await server.listen({ host: "127.0.0.1", port: 0 });
  t.teardown(() => server.drain(100));

  const waiting = [1, 2, 3].map(() => ask(port, "/zk/merkle-root"));
  await until(() => edge.stats().activeRequests === 3);
  const rejected = await ask(port, "/zk/merkle-root");
  t.is(rejected.status, 503);
  t.like(JSON.parse(rejected.text), { success: false, errorCode: "OVERLOADED", retryAfter: 1 });
  t.is(rejected.headers["retry-after"], "1");
  const clients = connectEach(port);
  for (const protocol of rpcProtocols) {
    const error = await t.throwsAsync(clients[protocol].call(ZkService.method.getMerkleRoot, {}));
    t.like(readFailure(error), { code: 14, reason: "OVERLOADED" });
    clients[protocol].close();
  }
  t.is((await ask(port, "/health")).status, 200);

  release();
  t.deepEqual(
    (await Promise.all(waiting)).map(({ status }) => status),
    [200, 200, 200],
  );
  t.is(edge.stats().activeRequests, 0);
  t.is((await ask(port, "/zk/merkle-root")).status, 200);
});

test("rejects requests after two late event-loop samples in a row, and recovers", async (t) => {
  // Serve another request meanwhile, so that the event loop has ticks.
  const other = createServer().listen(0);
  t.teardown(() => other.close());
  const overload = createOverload({ maxInFlight: 1_000_000, maxInFlightPerAddress: 1_000_000, maxLagMs: 150 });
  t.teardown(() => overload.stop());
  const block = (ms: number): void => {
    const end = performance.now() + ms;
    while (performance.now() < end);
  };
  const refusals: string[] = [];
  const look = (): void => {
    try {
      overload.check(0);
      refusals.push("in");
    } catch {
      refusals.push("refused");
    }
  };
  for (let i = 0; i < 3; i++) {
    block(600);
    await sleep(1);
    look();
  }
  t.is(refusals[0], "in");
  t.is(refusals.at(-1), "refused");
  await until(() => {
    look();
    return refusals.at(-1) === "in";
  });
});

test("serves other addresses while one address has its maximum of requests in flight", async (t) => {
  const server = await startEdgeServer(t);
  const headers = { ":method": "POST", ":path": "/", "content-type": "application/json", "content-length": "1000" };
  const rejected: number[] = [];
  const streams = Array.from({ length: 3 }, () => sessionFrom(t, server.port, "127.0.0.5")).flatMap((session) =>
    Array.from({ length: 200 }, () => {
      const stream = session.request(headers).on("error", () => undefined);
      stream.once("response", ({ ":status": status }) => rejected.push(Number(status)));
      stream.resume().write("{");
      return stream;
    }),
  );
  await until(() => rejected.length === 100 && server.edge.stats().activeRequests === 500);
  t.deepEqual(new Set(rejected), new Set([503]));
  t.is((await ask(server.port, largeAnswer(1), {}, "127.0.0.6")).status, 200);
  const { status, text } = await ask(server.port, largeAnswer(1), {}, "127.0.0.5");
  t.is(status, 503);
  t.like(JSON.parse(text), { errorCode: "OVERLOADED" });
  t.is((await ask(server.port, "/health", {}, "127.0.0.5")).status, 200);
  streams.forEach((stream) => stream.close());
  await until(() => server.edge.stats().activeRequests === 0);
  t.is((await ask(server.port, largeAnswer(1), {}, "127.0.0.5")).status, 200);
});
