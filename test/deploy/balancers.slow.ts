/** Load balancers with the configurations of deploy/ and docs/probes.md, in front of real nodes. */
import { createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { Agent } from "node:https";
import { HealthService, SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";
import { testKey } from "../helpers/chain/keys.js";
import { failDatabase } from "../helpers/nodes/failing-database.js";
import { startNodeProcess } from "../helpers/nodes/run-cli.js";
import { authorityDirectory, startMember, startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import { type Teardown } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { testUnless } from "../helpers/nodes/when.js";
import { type Balancer, type BalancerKind, checking, haproxyOnce, nginx } from "../helpers/process/balancers.js";
import { ask } from "../helpers/wire/plain-client.js";
import { openThrough, requestThrough } from "../helpers/wire/tls-client.js";

/** Returns the ports of the nodes that respond to some requests, and the statuses of other responses. */
async function served(balancer: Balancer): Promise<number[]> {
  const found = new Set<number>();
  for (let i = 0; i < 8; i++) {
    const { status, text } = await requestThrough(balancer, "/connectionstring");
    found.add(status === 200 ? Number(new URL(JSON.parse(text) as string).port) : status);
  }
  return [...found].sort((a, b) => a - b);
}

/** Waits until exactly these nodes respond. */
async function untilServedBy(balancer: Balancer, ...nodes: readonly TestNode[]): Promise<void> {
  const expected = String(nodes.map(({ port }) => port).sort((a, b) => a - b));
  let last: number[] = [];
  await until(async () => String((last = await served(balancer))) === expected, `${expected}, at last ${last.join()}`);
}

for (const kind of checking) {
  testUnless(kind.missing)(`${kind.name} sends requests to ready nodes only`, async (t) => {
    const [stays, changes] = [await startMember(t), await startMember(t)];
    const balancer = await kind.start(t, [stays.port, changes.port]);
    await untilServedBy(balancer, stays, changes);
    const repair = await failDatabase(t, changes);
    await untilServedBy(balancer, stays);
    await repair();
    await untilServedBy(balancer, stays, changes);
    await changes.stop();
    await untilServedBy(balancer, stays);

    const dormant = await startTestNode(t);
    t.is((await ask(dormant.port, "/readyz")).status, 503);
    await untilServedBy(await kind.start(t, [dormant.port, stays.port]), stays);
  });
}

testUnless(nginx.missing)("nginx passes over stopped nodes, but not over unready ones", async (t) => {
  const [stays, changes] = [await startMember(t), await startMember(t)];
  const balancer = await nginx.start(t, [stays.port, changes.port]);
  await untilServedBy(balancer, stays, changes);
  await failDatabase(t, changes);
  await until(async () => (await ask(changes.port, "/readyz")).status === 503, "not ready");
  t.is((await served(balancer)).length, 2);
  await changes.stop();
  t.deepEqual(await served(balancer), [stays.port]);
});

/** Returns the transports that a load balancer forwards. */
function transportsOf({ forwardsGrpc }: BalancerKind, { url, ca }: Balancer): Readonly<Record<string, Transport>> {
  const nodeOptions = ca === undefined ? {} : { ca };
  const over1 = { baseUrl: url, httpVersion: "1.1", nodeOptions } as const;
  const over2 = { baseUrl: url, httpVersion: "2", nodeOptions } as const;
  return {
    "Connect over HTTP/1.1": createConnectTransport(over1),
    "gRPC-Web over HTTP/1.1": createGrpcWebTransport(over1),
    ...(ca && { "Connect over HTTP/2": createConnectTransport(over2) }),
    ...(ca && { "gRPC-Web over HTTP/2": createGrpcWebTransport(over2) }),
    ...(forwardsGrpc && { gRPC: createGrpcTransport(over2) }),
  };
}

for (const kind of [...checking, nginx]) {
  testUnless(kind.missing)(`${kind.name} forwards calls, and each message of a stream at once`, async (t) => {
    const node = await startMember(t, { "trusted-proxies": "127.0.0.1" });
    const balancer = await kind.start(t, [node.port, node.port]);
    await untilServedBy(balancer, node);
    let isReady = false;
    /** Changes the health, of which all streams of the health have one more message. */
    const change = (): void => {
      isReady = !isReady;
      node.subsystems.set("signaling", { status: isReady ? SubsystemStatus.READY : SubsystemStatus.SKIPPED });
    };
    for (const [name, transport] of Object.entries(transportsOf(kind, balancer))) {
      const { version } = await createClient(InfoService, transport).getVersion({});
      t.truthy(version, name);
      const controller = new AbortController();
      const stream = createClient(HealthService, transport).watchHealth({}, { signal: controller.signal });
      const messages = stream[Symbol.asyncIterator]();
      t.false((await messages.next()).done, name);
      change();
      t.false((await messages.next()).done, name);
      controller.abort();
    }
    for (const [accept, start] of [
      ["text/event-stream", "data:"],
      ["application/jsonl", "{"],
    ] as const) {
      const controller = new AbortController();
      const { signal } = controller;
      const response = await openThrough(balancer, "/health/watch", { headers: { accept }, signal });
      let received = "";
      response
        .on("error", () => undefined)
        .setEncoding("utf8")
        .on("data", (data: string) => (received += data));
      const messages = (): number => received.split("\n").filter((line) => line.startsWith(start)).length;
      await until(() => messages() > 0, `${accept}: the first message`);
      const before = messages();
      change();
      await until(() => messages() > before, `${accept}: the next message`);
      controller.abort();
    }
  });
}

for (const kind of [...checking, nginx].filter(({ name }) => name !== "Varnish")) {
  testUnless(kind.missing)(`${kind.name} forwards the address of the client, and paths unchanged`, async (t) => {
    const node = await startMember(t, { "trusted-proxies": "127.0.0.1" });
    const balancer = await kind.start(t, [node.port, node.port]);
    await untilServedBy(balancer, node);
    const claims = { "X-Forwarded-For": "192.0.2.1", Forwarded: "for=192.0.2.1" };
    // On Linux, all of 127.0.0.0/8 is local.
    const { text } = await requestThrough(balancer, "/", { headers: claims, localAddress: "127.0.0.2" });
    t.is((JSON.parse(text) as { yourIP: string }).yourIP, "127.0.0.2");
    for (const field of ["a%2Fb", "a%2F..%2Fb", "%2E%2E", "caf%C3%A9", "a%20b", "a+b", "a%3Bb"]) {
      const path = `/storage-program/stor-${"0".repeat(40)}/field/${field}?x=%2F`;
      t.is((await requestThrough(balancer, path)).text, (await ask(node.port, path)).text, path);
    }
  });
}

/** Starts the only authority of its network, on a free port or this one, with a time to leave the load balancer. */
async function startLeaving(t: Teardown, dir: string, port = 0) {
  const node = await startNodeProcess(t, dir, ["--shutdown-delay", "5", "--rpc-port", String(port)]);
  await until(async () => (await ask(node.port, "/readyz")).status === 200, "ready");
  return node;
}

testUnless(haproxyOnce.missing)("no request of 10,000 through HAProxy fails while a node restarts", async (t) => {
  const dirs = [await authorityDirectory(t, testKey(1)), await authorityDirectory(t, testKey(2))] as const;
  const [stays, restarts] = [await startLeaving(t, dirs[0]), await startLeaving(t, dirs[1])];
  const balancer = await haproxyOnce.start(t, [stays.port, restarts.port]);
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  t.teardown(() => agent.destroy());

  const failures: string[] = [];
  const counts = new Map<number, number>();
  let sent = 0;
  let isOver = false;
  const json = { "content-type": "application/json" };
  const call = { method: "POST", headers: json, body: '{"jsonrpc":"2.0","id":1,"method":"info.getConnectionString"}' };
  /** Sends one request after the other, reads and calls in turns. */
  async function send(): Promise<void> {
    while (!isOver || sent < 10_000) {
      const options = sent++ % 2 === 0 ? { agent } : { agent, ...call };
      const path = "method" in options ? "/" : "/connectionstring";
      const { status, text } = await requestThrough(balancer, path, options).catch((error: unknown) => ({
        status: 0,
        text: String(error),
      }));
      const port = Number(/127\.0\.0\.1:(\d+)/.exec(text)?.[1]);
      if (status !== 200 || Number.isNaN(port)) {
        failures.push(`${status} ${text}`);
      }
      counts.set(port, (counts.get(port) ?? 0) + 1);
    }
  }
  const sending = Promise.all(Array.from({ length: 16 }, send));
  const countOf = ({ port }: { readonly port: number }): number => counts.get(port) ?? 0;
  await until(() => countOf(stays) > 100 && countOf(restarts) > 100, "both respond");
  restarts.child.kill("SIGTERM");
  t.is(await restarts.ended, 0);
  const before = countOf(restarts);
  await startLeaving(t, dirs[1], restarts.port);
  await until(() => countOf(restarts) > before + 100, "the restarted node responds");
  isOver = true;
  await sending;
  t.deepEqual(failures, []);
  t.true(sent >= 10_000);
  t.log(`${sent} requests`);
});
