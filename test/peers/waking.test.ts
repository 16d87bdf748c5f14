/** A dormant node, and the events that end its dormancy. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test from "ava";
import { ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { HealthService, HealthStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { testKey } from "../helpers/chain/keys.js";
import type { HealthBody } from "../helpers/process/health-shape.js";
import { endpointOf, networkOf, peersOf, startMemberOf } from "../helpers/nodes/network.js";
import { connectStranger } from "../helpers/nodes/odd-peer.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { runCli } from "../helpers/nodes/run-cli.js";
import type { TestNode } from "../helpers/nodes/start-node.js";
import { until } from "../helpers/nodes/until.js";

const { genesis, genesisHash } = networkOf(testKey(1));

const health = (node: TestNode): Promise<HealthBody> => askJson<HealthBody>(node.port, "/health");

/** Collects the different statuses that WatchHealth streams, in order. */
function watch(node: TestNode): HealthStatus[] {
  const seen: HealthStatus[] = [];
  const client = createClient(HealthService, createGrpcTransport({ baseUrl: node.rpcUrl }));
  void (async () => {
    for await (const { snapshot } of client.watchHealth({})) {
      if (seen.at(-1) !== snapshot!.status) {
        seen.push(snapshot!.status);
      }
    }
  })().catch(() => undefined);
  return seen;
}

test("a verified peer ends the dormancy, and the deferred boot steps run", async (t) => {
  const dormantNode = await startMemberOf(t, { key: testKey(1), genesis, flags: { "tlsnotary-enabled": true } });
  t.true(dormantNode.dormant);
  const before = await health(dormantNode);
  t.like(before, { status: "dormant", dormant: true });
  t.is(before.subsystems["main_loop"]?.status, "skipped");
  const seen = watch(dormantNode);
  await until(() => seen.length === 1);

  await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(dormantNode)] });
  await until(async () => {
    const { accepting, dormant, boot } = await health(dormantNode);
    return accepting && !dormant && boot.complete;
  });
  const after = await health(dormantNode);
  t.like(after, { status: "ok", dormant: false });
  t.true(after.boot.complete);
  t.is(after.boot.current, null);
  t.is(after.boot.steps_total, after.boot.steps_ready + after.boot.steps_skipped);
  t.is(before.boot.steps_skipped - after.boot.steps_skipped, 3);
  for (const name of ["main_loop", "tlsnotary", "dtr"] as const) {
    t.is(after.subsystems[name]?.status, "ready", name);
  }
  t.is((await ask(dormantNode.port, "/health")).headers["x-node-dormant"], undefined);
  t.is((await ask(dormantNode.port, "/readyz")).status, 200);
  await until(() => seen.at(-1) === HealthStatus.OK);
  t.deepEqual(seen, [HealthStatus.DORMANT, HealthStatus.OK]);
  const lines = await askJson<{ message: string }[]>(dormantNode.port, "/public_logs");
  t.true(lines.some(({ message }) => message === "The node has a peer; its dormancy ends"));
});

test("a node stopped while its dormancy ends leaves nothing running", async (t) => {
  const dormantNode = await startMemberOf(t, { key: testKey(1), genesis, flags: { "tlsnotary-enabled": true } });
  const waking = startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(dormantNode)] });
  await until(async () => !(await health(dormantNode)).dormant);
  await dormantNode.stop();
  const { iterationsTotal } = dormantNode.mainLoop.heartbeat();
  // The main loop of the other node has the same interval.
  const { mainLoop } = await waking;
  const ticks = mainLoop.heartbeat().iterationsTotal;
  await until(() => mainLoop.heartbeat().iterationsTotal >= ticks + 3n);
  t.is(dormantNode.mainLoop.heartbeat().iterationsTotal, iterationsTotal);
});

test("a handshake from an endpoint that does not respond does not end the dormancy", async (t) => {
  const dormantNode = await startMemberOf(t, { key: testKey(1), genesis });
  await connectStranger(t, dormantNode.ports["omni"]!, testKey(7)).handshake({
    endpoint: "https://127.0.0.1:9",
    genesisHash,
  });
  // The node has dialed the endpoint without success.
  const control = createClient(ControlService, dormantNode.control);
  await until(async () => (await control.listBook({})).entries.some(({ failures }) => failures > 0));
  t.is((await health(dormantNode)).status, "dormant");
});

test("the operator adds, lists and removes a peer", async (t) => {
  const peer = await startMemberOf(t, { key: testKey(1), genesis });
  const node = await startMemberOf(t, { key: testKey(2), genesis, flags: { "control-port": "0" } });
  t.is((await health(node)).status, "dormant");
  const url = endpointOf(peer);
  const cli = (...args: readonly string[]) => runCli(["peers", ...args]);
  const added = await cli("add", url, "--data-dir", node.dir);
  t.is(added.code, 0, added.stderr);
  t.regex(added.stdout, new RegExp(`${url} +operator +${peer.publicKey.slice(0, 10)}.* online +0 `));
  await until(async () => (await health(node)).status === "ok");
  t.is((await peersOf(node))[0]!.identity, peer.publicKey);

  // The control port works as well, with the token.
  const control = ["--control", `127.0.0.1:${node.ports["control"]}`, "--data-dir", node.dir];
  const book = async () => JSON.parse((await cli("book", "--json", ...control)).stdout) as { origin: string }[];
  t.like((await book())[0], { endpoint: url, origin: "operator", verified: true, online: true, block: 0 });
  const transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${node.ports["control"]}` });
  const open = createClient(ControlService, transport);
  await t.throwsAsync(open.listBook({}), { message: /\[unauthenticated\] The header authorization must be/ });

  for (const [command, endpoint, message] of [
    ["add", "http://127.0.0.1:1", /must start with https/],
    ["add", "nonsense", /must have the form/],
    ["add", endpointOf(node), /this node's own address/],
    ["remove", "https://127.0.0.1:1", /does not know this peer/],
  ] as const) {
    const { code, stderr } = await cli(command, endpoint, "--data-dir", node.dir);
    t.is(code, 1, stderr);
    t.regex(stderr, message);
  }
  t.is((await cli("remove", url, "--data-dir", node.dir)).code, 0);
  t.true((await book()).every(({ origin }) => origin !== "operator"));
  const unreachable = await cli("book", "--data-dir", "/nonexistent");
  t.is(unreachable.code, 3);
  t.regex(unreachable.stderr, /No node responds at \/nonexistent\/control\.sock/);
});
