/** A node that has nobody, and what wakes it. */
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

/** The statuses that WatchHealth tells of, one after the other. */
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

test("a peer that shakes hands wakes it: the boot steps that were left out are taken", async (t) => {
  const sleeper = await startMemberOf(t, { key: testKey(1), genesis, flags: { "tlsnotary-enabled": true } });
  t.true(sleeper.dormant);
  const before = await health(sleeper);
  t.like(before, { status: "dormant", dormant: true });
  t.is(before.subsystems["main_loop"]?.status, "skipped");
  const seen = watch(sleeper);
  await until(() => seen.length === 1);

  await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(sleeper)] });
  await until(async () => {
    const { accepting, dormant, boot } = await health(sleeper);
    return accepting && !dormant && boot.complete;
  });
  const after = await health(sleeper);
  t.like(after, { status: "ok", dormant: false });
  t.true(after.boot.complete);
  t.is(after.boot.current, null);
  t.is(after.boot.steps_total, after.boot.steps_ready + after.boot.steps_skipped);
  t.is(before.boot.steps_skipped - after.boot.steps_skipped, 3);
  for (const name of ["main_loop", "tlsnotary", "dtr"] as const) {
    t.is(after.subsystems[name]?.status, "ready", name);
  }
  t.is((await ask(sleeper.port, "/health")).headers["x-node-dormant"], undefined);
  t.is((await ask(sleeper.port, "/readyz")).status, 200);
  await until(() => seen.at(-1) === HealthStatus.OK);
  t.deepEqual(seen, [HealthStatus.DORMANT, HealthStatus.OK]);
  const lines = await askJson<{ message: string }[]>(sleeper.port, "/public_logs");
  t.true(lines.some(({ message }) => message === "The node has a peer; its dormancy ends"));
});

test("a node that is told to stop while it wakes leaves nothing running", async (t) => {
  const sleeper = await startMemberOf(t, { key: testKey(1), genesis, flags: { "tlsnotary-enabled": true } });
  const waking = startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(sleeper)] });
  await until(async () => !(await health(sleeper)).dormant);
  await sleeper.stop();
  const { iterationsTotal } = sleeper.mainLoop.heartbeat();
  // The other node's loop has the same pace.
  const { mainLoop } = await waking;
  const ticks = mainLoop.heartbeat().iterationsTotal;
  await until(() => mainLoop.heartbeat().iterationsTotal >= ticks + 3n);
  t.is(sleeper.mainLoop.heartbeat().iterationsTotal, iterationsTotal);
});

test("who shakes hands and is not there when he is dialed wakes nobody", async (t) => {
  const sleeper = await startMemberOf(t, { key: testKey(1), genesis });
  await connectStranger(t, sleeper.ports["omni"]!, testKey(7)).handshake({
    endpoint: "https://127.0.0.1:9",
    genesisHash,
  });
  // He has been asked, and did not answer.
  const control = createClient(ControlService, sleeper.control);
  await until(async () => (await control.listBook({})).entries.some(({ failures }) => failures > 0));
  t.is((await health(sleeper)).status, "dormant");
});

test("the operator adds a peer, sees the book, and removes it", async (t) => {
  const peer = await startMemberOf(t, { key: testKey(1), genesis });
  const node = await startMemberOf(t, { key: testKey(2), genesis, flags: { "control-port": "0" } });
  t.is((await health(node)).status, "dormant");
  const url = endpointOf(peer);
  const added = await runCli(["peers", "add", url, "--data-dir", node.dir]);
  t.is(added.code, 0, added.stderr);
  t.regex(added.stdout, new RegExp(`${url} +operator +${peer.publicKey.slice(0, 10)}.* online +0 `));
  await until(async () => (await health(node)).status === "ok");
  t.is((await peersOf(node))[0]!.identity, peer.publicKey);

  // Over the port as well, with the token.
  const control = ["--control", `127.0.0.1:${node.ports["control"]}`, "--data-dir", node.dir];
  const book = await runCli(["peers", "book", "--json", ...control]);
  t.like((JSON.parse(book.stdout) as object[])[0], {
    endpoint: url,
    origin: "operator",
    verified: true,
    online: true,
    block: 0,
  });
  const open = createClient(
    ControlService,
    createGrpcTransport({ baseUrl: `http://127.0.0.1:${node.ports["control"]}` }),
  );
  await t.throwsAsync(open.listBook({}), { message: /\[unauthenticated\] The header authorization must be/ });

  for (const [args, code, message] of [
    [["add", "http://127.0.0.1:1"], 1, /must begin with https/],
    [["add", "nonsense"], 1, /must have the form/],
    [["add", endpointOf(node)], 1, /this node's own address/],
    [["remove", "https://127.0.0.1:1"], 1, /does not know this peer/],
  ] as const) {
    const { code: got, stderr } = await runCli(["peers", ...args, "--data-dir", node.dir]);
    t.is(got, code, stderr);
    t.regex(stderr, message);
  }
  t.is((await runCli(["peers", "remove", url, "--data-dir", node.dir])).code, 0);
  const left = JSON.parse((await runCli(["peers", "book", "--json", ...control])).stdout) as { origin: string }[];
  t.true(left.every(({ origin }) => origin !== "operator"));
  const nobody = await runCli(["peers", "book", "--data-dir", "/nonexistent"]);
  t.is(nobody.code, 3);
  t.regex(nobody.stderr, /No node responds at \/nonexistent\/control\.sock/);
});
