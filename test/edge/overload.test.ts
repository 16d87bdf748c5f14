import test from "ava";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { ZkService } from "../../gen/gatehouse/zk/v1/zk_pb.js";
import { createConcurrency, defaultStreams } from "../../src/edge/concurrency.js";
import { largeAnswer, startEdgeServer, waitingAnswer } from "../helpers/nodes/edge-server.js";
import { ask, sessionFrom } from "../helpers/wire/plain-client.js";
import { connectEach, readFailure, rpcProtocols } from "../helpers/wire/rpc-clients.js";
import { until } from "../helpers/nodes/until.js";

test("rejects requests above the limit in every protocol, but serves probes", async (t) => {
  const overload = { maxInFlight: 3, maxInFlightPerAddress: 3, maxLagMs: 60_000 };
  const server = await startEdgeServer(t, { overload });
  const { port, edge } = server;

  const waiting = [1, 2, 3].map(() => ask(port, waitingAnswer));
  await until(() => edge.stats().activeRequests === 3);
  const rejected = await ask(port, waitingAnswer);
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

  server.release();
  t.deepEqual(
    (await Promise.all(waiting)).map(({ status }) => status),
    [200, 200, 200],
  );
  t.is(edge.stats().activeRequests, 0);
  t.is((await ask(port, waitingAnswer)).status, 200);
  t.deepEqual(server.errors, []);
});

test("rejects requests after two late event-loop samples in a row, and recovers", async (t) => {
  // Serve another request meanwhile, so that the event loop has ticks.
  const other = createServer().listen(0);
  t.teardown(() => other.close());
  const limits = { maxInFlight: 1_000_000, maxInFlightPerAddress: 1_000_000, maxLagMs: 150 };
  const overload = createConcurrency(limits, defaultStreams);
  t.teardown(() => overload.stop());
  const block = (ms: number): void => {
    const end = performance.now() + ms;
    while (performance.now() < end);
  };
  const refusals: string[] = [];
  const look = (): void => {
    try {
      overload.checkLoad();
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
  t.is((await ask(server.port, largeAnswer(1), {}, { localAddress: "127.0.0.6" })).status, 200);
  const { status, text } = await ask(server.port, largeAnswer(1), {}, { localAddress: "127.0.0.5" });
  t.is(status, 503);
  t.like(JSON.parse(text), { errorCode: "OVERLOADED" });
  t.is((await ask(server.port, "/health", {}, { localAddress: "127.0.0.5" })).status, 200);
  streams.forEach((stream) => stream.close());
  await until(() => server.edge.stats().activeRequests === 0);
  t.is((await ask(server.port, largeAnswer(1), {}, { localAddress: "127.0.0.5" })).status, 200);
});
