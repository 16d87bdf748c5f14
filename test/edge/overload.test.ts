import type { OutgoingHttpHeaders } from "node:http2";
import test, { type ExecutionContext } from "ava";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { ZkService } from "../../gen/gatehouse/zk/v1/zk_pb.js";
import { UsageTracker } from "../../src/edge/address-usage.js";
import { createConcurrency, defaultStreams } from "../../src/edge/concurrency.js";
import { largeAnswer, startEdgeServer, waitingAnswer } from "../helpers/nodes/edge-server.js";
import { ask, sessionFrom } from "../helpers/wire/plain-client.js";
import { connectEach, readFailure, rpcProtocols } from "../helpers/wire/rpc-clients.js";
import { until } from "../helpers/nodes/until.js";

test("rejects requests above the limit in every protocol, but serves probes", async (t) => {
  const overload = { maxInFlight: 3, maxInFlightPerAddress: 4, maxLagMs: 60_000 };
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
  const overload = createConcurrency(limits, defaultStreams, new UsageTracker());
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

/** Opens 600 requests of an address, and records the statuses of those that get a response. */
function openRequests(t: ExecutionContext, port: number, headers: OutgoingHttpHeaders, body?: string) {
  const statuses: number[] = [];
  const streams = Array.from({ length: 3 }, () => sessionFrom(t, port, "127.0.0.5")).flatMap((session) =>
    Array.from({ length: 200 }, () => {
      const stream = session.request(headers, { endStream: body === undefined }).on("error", () => undefined);
      stream.once("response", ({ ":status": status }) => statuses.push(Number(status)));
      stream.resume();
      if (body !== undefined) {
        stream.write(body);
      }
      return stream;
    }),
  );
  return { statuses, close: () => streams.forEach((stream) => stream.close()) };
}

test("serves other addresses while one address has its maximum of requests in flight", async (t) => {
  const server = await startEdgeServer(t);
  const { statuses, close } = openRequests(t, server.port, { ":path": waitingAnswer });
  await until(() => statuses.length === 100 && server.edge.stats().activeRequests === 500);
  t.deepEqual(new Set(statuses), new Set([429]));
  t.is((await ask(server.port, largeAnswer(1), {}, { localAddress: "127.0.0.6" })).status, 200);
  const { status, text } = await ask(server.port, largeAnswer(1), {}, { localAddress: "127.0.0.5" });
  t.is(status, 429, "a limit of the address, which a proxy must not take for a failing node");
  t.like(JSON.parse(text), { errorCode: "RATE_LIMITED", retryAfter: 1 });
  t.is((await ask(server.port, "/health", {}, { localAddress: "127.0.0.5" })).status, 200);
  close();
  await until(() => server.edge.stats().activeRequests === 0);
  t.is((await ask(server.port, largeAnswer(1), {}, { localAddress: "127.0.0.5" })).status, 200);
});

test("requests without their full body occupy no slot", async (t) => {
  const overload = { maxInFlight: 20, maxInFlightPerAddress: 10, maxLagMs: Infinity };
  const server = await startEdgeServer(t, { overload });
  const headers = { ":method": "POST", ":path": "/", "content-type": "application/json", "content-length": "1000" };
  const { statuses, close } = openRequests(t, server.port, headers, "{");
  await until(() => server.edge.stats().unansweredRequests === 600);
  t.is(server.edge.stats().activeRequests, 0);
  t.is((await ask(server.port, largeAnswer(1), {}, { localAddress: "127.0.0.5" })).status, 200);
  t.deepEqual(statuses, []);
  close();
  await until(() => server.edge.stats().unansweredRequests === 0);
});

test("the address with most requests gives way while all slots are taken, and the edge says so", async (t) => {
  const overload = { maxInFlight: 3, maxInFlightPerAddress: 3, maxLagMs: Infinity };
  const server = await startEdgeServer(t, { overload });
  const waitFrom = (localAddress: string) =>
    ask(server.port, waitingAnswer, {}, { localAddress }).then(
      ({ status }) => status,
      () => "cut",
    );
  const ofOne = [1, 2, 3].map(() => waitFrom("127.0.0.5"));
  await until(() => server.edge.stats().activeRequests === 3);
  const ofTwo = waitFrom("127.0.0.6");
  t.is(await Promise.race(ofOne), "cut");
  t.is(server.edge.overload(), undefined);
  // Two addresses have two requests and one, so neither has more than the third would.
  await until(() => server.edge.stats().activeRequests === 3);
  t.is(await waitFrom("127.0.0.6"), 503);
  t.regex(server.edge.overload() ?? "", /^3 requests are in flight/);
  server.release();
  t.deepEqual((await Promise.all([...ofOne, ofTwo])).sort(), [200, 200, 200, "cut"]);
});
