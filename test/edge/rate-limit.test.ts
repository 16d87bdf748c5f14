import test from "ava";
import { setTimeout as pause } from "node:timers/promises";
import { HealthService } from "../../gen/gatehouse/health/v1/health_pb.js";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";
import { Health } from "../../gen/health/v1/health_pb.js";
import { ask } from "../helpers/wire/plain-client.js";
import { connectEach, readFailure, rpcProtocols } from "../helpers/wire/rpc-clients.js";
import { startTestNode } from "../helpers/nodes/start-node.js";
import { connectTransport } from "../helpers/wire/transports.js";
import { bytesPerRequest, createRateLimit } from "../../src/edge/rate-limit.js";
import { RpcError } from "../../src/rpc/errors.js";

test("states the wait in proportion to the rate, and counts addresses", (t) => {
  const limit = createRateLimit(2);
  limit.count("a");
  limit.count("a");
  t.is(t.throws(() => limit.count("a"), { instanceOf: RpcError }).retryAfterS, 30);
  t.notThrows(() => limit.count("b"), "another address is not concerned");
  t.deepEqual(limit.counts(), { totalIps: 2, blockedIps: 1 });
});

test("counts nothing without a limit", (t) => {
  const limit = createRateLimit(0);
  limit.count("192.0.2.1");
  limit.chargeBytes("192.0.2.1", 100 * bytesPerRequest);
  t.deepEqual(limit.counts(), { totalIps: 0, blockedIps: 0 });
});

test("counts an IPv6 /64 prefix as one caller", (t) => {
  const limit = createRateLimit(2);
  limit.count("2001:db8:0:1::1");
  limit.count("2001:0DB8::1:ffff:ffff:ffff:ffff");
  t.throws(() => limit.count("2001:db8:0:1:2:3:4.5.6.7"), { message: /^Too many requests/ });
  t.notThrows(() => limit.count("2001:db8:0:2::1"));
});

test("rejects requests over the limit in every protocol with a retry delay, but serves probes", async (t) => {
  const { port } = await startTestNode(t, { "rate-limit": "2", "rate-limit-exempt": "" });
  const first = await ask(port, "/info");
  t.is(first.status, 200);
  t.is(first.headers["ratelimit-policy"], '"default";q=2;w=60');
  t.regex(String(first.headers["ratelimit"]), /^"default";r=1;t=\d+$/);
  await ask(port, "/nothing");

  const rejected = await ask(port, "/info");
  t.is(rejected.status, 429);
  const body = JSON.parse(rejected.text) as { errorCode: string; retryAfter: number };
  t.is(body.errorCode, "RATE_LIMITED");
  t.is(rejected.headers["retry-after"], String(body.retryAfter));
  t.regex(String(rejected.headers["ratelimit"]), /^"default";r=0;t=\d+$/);

  const clients = connectEach(port);
  for (const protocol of rpcProtocols) {
    const error = await t.throwsAsync(clients[protocol].call(InfoService.method.getInfo, {}));
    const failure = readFailure(error);
    t.like(failure, { code: 8, reason: "RATE_LIMITED" }, protocol);
    t.true(failure.retryAfterS! >= 1, protocol);
    await t.notThrowsAsync(clients[protocol].call(HealthService.method.getHealth, {}));
    await t.notThrowsAsync(clients[protocol].call(Health.method.check, {}));
    clients[protocol].close();
  }
  for (const probe of ["/health", "/health/subsystems", "/livez", "/readyz", "/version"]) {
    t.not((await ask(port, probe)).status, 429, probe);
  }
  t.like(JSON.parse((await ask(port, "/rate-limit/stats")).text), { errorCode: "RATE_LIMITED" });
});

for (const edge of ["compiled", "express"]) {
  test(`counts preflights without rejecting them, over HTTP/1.1 and HTTP/2, ${edge} edge`, async (t) => {
    const flags = { "metrics-enabled": true, "metrics-port": "0", "rate-limit": "1", "rate-limit-exempt": "", edge };
    const { port, subsystems } = await startTestNode(t, flags);
    const preflight = { method: "OPTIONS", headers: { Origin: "https://example.org" } };
    let sent = 0;
    const clients = (["HTTP/1.1", "HTTP/2 by prior knowledge"] as const).map((name) =>
      connectTransport(name, { port }),
    );
    clients.forEach((client) => t.teardown(() => client.close()));
    const sendAll = async (): Promise<void> => {
      for (const client of clients) {
        for (const path of ["/info", "/health", "/nothing", "/gatehouse.info.v1.InfoService/GetInfo"]) {
          const { status, headers } = await client.ask(path, preflight);
          t.is(status, 204, `${client.name} ${path}`);
          t.truthy(headers["x-request-id"]);
          t.true(headers["access-control-allow-headers"]!.split(", ").includes("last-event-id"));
          sent++;
        }
      }
    };
    await sendAll();
    // Preflights took nothing from the limit of the requests that follow them.
    t.is((await clients[0]!.ask("/info")).status, 200);
    t.is((await clients[0]!.ask("/info")).status, 429);
    await sendAll();
    const { text } = await ask(subsystems.get("metrics").port!, "/metrics");
    const counted = /^gatehouse_requests_total\{protocol="http",rpc="[^"/]*",code="OK"\} (\d+)$/m.exec(text)?.[1];
    t.is(
      Number(counted),
      sent,
      text
        .split("\n")
        .filter((line) => line.startsWith("gatehouse_requests_total"))
        .join("\n"),
    );
  });
}

test("rate limits malformed requests before their body is read", async (t) => {
  const { port } = await startTestNode(t, { "rate-limit": "2", "rate-limit-exempt": "" });
  const path = "/gatehouse.info.v1.InfoService/GetInfo";
  const send = async (contentType: string): Promise<Response> =>
    fetch(`http://127.0.0.1:${port}${path}`, {
      method: "POST",
      headers: { "Content-Type": contentType },
      body: Buffer.from([0xff, 0xff, 0xff]),
    });
  const undecodable = await send("application/proto");
  t.is(undecodable.status, 400);
  t.truthy(undecodable.headers.get("ratelimit"));
  t.is((await send("application/json")).status, 400);
  for (const contentType of ["application/proto", "application/json"]) {
    const rejected = await send(contentType);
    t.is(rejected.status, 429, contentType);
    t.truthy(rejected.headers.get("retry-after"));
    t.like(await rejected.json(), { code: "resource_exhausted" });
  }
  t.is((await ask(port, path)).status, 429);
});

test("charges a large body to the remaining quota, after refilling for the time before it", async (t) => {
  // One request per millisecond.
  const limit = createRateLimit(60_000);
  limit.count("192.0.2.1");
  await pause(200);
  limit.chargeBytes("192.0.2.1", 100 * bytesPerRequest);
  const remaining = Number(/r=(\d+);/.exec(limit.count("192.0.2.1")[3]!)![1]);
  t.true(remaining < 59_990, String(remaining));
});
