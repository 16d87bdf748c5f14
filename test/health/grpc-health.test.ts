import test from "ava";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { Health, HealthCheckResponse_ServingStatus as Serving } from "../../gen/health/v1/health_pb.js";
import { HealthService, HealthStatus, SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { readFailure } from "../helpers/wire/rpc-clients.js";
import { startMember } from "../helpers/nodes/start-node.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";

async function start(t: Teardown) {
  const node = await startMember(t);
  return { node, client: createClient(Health, createGrpcTransport({ baseUrl: node.rpcUrl })) };
}

test("reports the registry's states by Check and List", async (t) => {
  const { node, client } = await start(t);
  const statusOf = async (service: string): Promise<Serving> => (await client.check({ service })).status;
  t.is(await statusOf(""), Serving.SERVING);
  t.is(await statusOf("readiness"), Serving.SERVING);
  t.is(await statusOf("chain"), Serving.SERVING);
  t.is(await statusOf("mcp"), Serving.NOT_SERVING);

  node.subsystems.set("chain", { status: SubsystemStatus.FAILED, error: { message: "the test failed it" } });
  t.is(await statusOf(""), Serving.NOT_SERVING);
  t.is(await statusOf("readiness"), Serving.NOT_SERVING);
  const { statuses } = await client.list({});
  t.is(Object.keys(statuses).length, 12);
  t.is(statuses["chain"]!.status, Serving.NOT_SERVING);
  t.is(statuses["rpc"]!.status, Serving.SERVING);

  const failure = readFailure(await t.throwsAsync(client.check({ service: "nobody" })));
  t.like(failure, { code: 5, reason: "NOT_FOUND" });
});

test("sends each change of the watched service by Watch, and no other", async (t) => {
  const { node, client } = await start(t);
  const reported: Serving[] = [];
  const done = (async () => {
    for await (const { status } of client.watch({ service: "metrics" })) {
      reported.push(status);
      if (reported.length === 1) {
        node.subsystems.set("omni", { status: SubsystemStatus.READY });
        node.subsystems.set("metrics", { status: SubsystemStatus.READY });
      } else if (reported.length === 2) {
        node.subsystems.set("metrics", { status: SubsystemStatus.FAILED, error: { message: "the test failed it" } });
      } else {
        void node.stop();
      }
    }
  })();
  await done;
  t.deepEqual(reported, [Serving.NOT_SERVING, Serving.SERVING, Serving.NOT_SERVING]);
});

test("reports full names of services, as clients with health checking ask for them, by Check and Watch", async (t) => {
  const { node, client } = await start(t);
  for (const service of ["gatehouse.chain.v1.ChainService", "gatehouse.event.v1.EventService"]) {
    t.is((await client.check({ service })).status, Serving.SERVING, service);
  }
  const off = { service: "gatehouse.attestation.v1.AttestationService" };
  t.is(readFailure(await t.throwsAsync(client.check(off))).code, 5, "a service that is off");
  const reported: Serving[] = [];
  for await (const { status } of client.watch({ service: "gatehouse.chain.v1.ChainService" })) {
    reported.push(status);
    if (reported.length === 1) {
      node.subsystems.set("chain", { status: SubsystemStatus.FAILED, error: { message: "the test failed it" } });
    } else {
      break;
    }
  }
  t.deepEqual(reported, [Serving.SERVING, Serving.NOT_SERVING]);
});

test("reports an unknown service by Watch, and keeps the stream open", async (t) => {
  const { node, client } = await start(t);
  const reported: Serving[] = [];
  for await (const { status } of client.watch({ service: "nobody" })) {
    reported.push(status);
    // Change another service, which only the other watcher reports; then end the watch.
    void (async () => {
      const otherWatch = client.watch({ service: "metrics" })[Symbol.asyncIterator]();
      await otherWatch.next();
      node.subsystems.set("metrics", { status: SubsystemStatus.READY });
      await otherWatch.next();
      await node.stop();
    })();
  }
  t.deepEqual(reported, [Serving.SERVICE_UNKNOWN]);
});

const transports = {
  gRPC: (baseUrl: string) => createGrpcTransport({ baseUrl }),
  Connect: (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "1.1" }),
  "gRPC-Web": (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
};
for (const [protocol, transport] of Object.entries(transports)) {
  test(`combines changes in WatchHealth, and ends with the node (${protocol})`, async (t) => {
    const { node } = await start(t);
    const client = createClient(HealthService, transport(node.rpcUrl));
    const reported: string[] = [];
    for await (const { snapshot } of client.watchHealth({})) {
      reported.push(`${HealthStatus[snapshot!.status]} ${snapshot!.accepting}`);
      if (reported.length === 1) {
        for (let i = 0; i < 50; i++) {
          node.subsystems.set("omni", { status: i % 2 === 0 ? SubsystemStatus.READY : SubsystemStatus.FAILED });
        }
      } else if (reported.length === 2) {
        void node.stop();
      }
    }
    t.deepEqual(reported, ["OK true", "DEGRADED true", "DEGRADED false"]);
  });
}

test("releases watchers that disconnect", async (t) => {
  const node = await startMember(t, { "metrics-enabled": true, "metrics-port": "0" });
  const client = createClient(HealthService, createConnectTransport({ baseUrl: node.rpcUrl, httpVersion: "1.1" }));
  const openStreams = async (): Promise<number> => {
    const page = await (await fetch(`http://127.0.0.1:${node.subsystems.get("metrics").port}/metrics`)).text();
    return Number(/^gatehouse_open_streams (\d+)$/m.exec(page)?.[1]);
  };
  const watchers = Array.from({ length: 50 }, () => new AbortController());
  for (const { signal } of watchers) {
    await client.watchHealth({}, { signal })[Symbol.asyncIterator]().next();
  }
  t.is(await openStreams(), 50);
  watchers.forEach((watcher) => watcher.abort());
  await until(async () => (await openStreams()) === 0);
});
