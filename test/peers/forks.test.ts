/** Two blocks with one number and signer: nodes that saw both report the fork, and the signer stops. */
import { createClient } from "@connectrpc/connect";
import test from "ava";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import type { Block } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { freePort } from "../helpers/nodes/free-port.js";
import { testKey } from "../helpers/chain/keys.js";
import { clientOf, submit } from "../helpers/chain/submit.js";
import {
  chainFailure,
  endpointOf,
  evidenceOf,
  type HasPort,
  headOf,
  healthOf,
  makeBlocks,
  networkOf,
  type NodeProcess,
  peersOf,
  seedBlocks,
  sendAll,
  startMemberOf,
  startProcessOf,
  statusAt,
  untilAt,
  untilPeerIs,
} from "../helpers/nodes/network.js";
import { startOddPeer } from "../helpers/nodes/odd-peer.js";
import { ask } from "../helpers/wire/plain-client.js";
import { runCli } from "../helpers/nodes/run-cli.js";
import { readFailure } from "../helpers/wire/rpc-clients.js";
import { controlTransport } from "../helpers/nodes/start-node.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";

const authority = testKey(1);
const { genesis, genesisHash } = networkOf(authority);

const forkAt = (number: number): RegExp =>
  new RegExp(
    `^The chain is forked: the key ${authority.publicKey} has signed two blocks with the number ${number}, 0x`,
  );
const untilFork = (node: HasPort, number: number) => until(async () => forkAt(number).test(await chainFailure(node)));

async function end({ child, ended }: NodeProcess, signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
  child.kill(signal);
  await ended;
}

test("two processes with one key fork the chain: nodes that see both report it, and the signer stops", async (t) => {
  t.timeout(300_000);
  const ports = { "rpc-port": String(await freePort()), "omni-port": String(await freePort()), "port-drift": "deny" };
  const first = await startProcessOf(t, { key: authority, genesis, flags: ports });
  const followerDir = await temporaryDirectory(t);
  const follow = (recover: boolean) =>
    startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(first)], dir: followerDir, flags: { recover } });
  let follower = await follow(false);
  for (const nonce of [1, 2]) {
    await submit(clientOf(t, first), nonce);
    await untilAt(follower, nonce);
  }
  await end(first, "SIGKILL");
  const originalHead = await headOf(follower);

  // With --recover and without peers, the second process produces block 1 again.
  const secondDir = await temporaryDirectory(t);
  const member = { key: authority, genesis, dir: secondDir };
  const elsewhere = await startProcessOf(t, { ...member, flags: { recover: true } });
  await submit(clientOf(t, elsewhere), 3);
  await untilAt(elsewhere, 1);
  await end(elsewhere);
  const start = (recover: boolean) => startProcessOf(t, { ...member, flags: { ...ports, recover } });
  let second = await start(true);
  const control = createClient(ControlService, controlTransport(join(secondDir, "control.sock")));
  await control.addPeer({ endpoint: endpointOf(follower) });

  await untilFork(follower, 1);
  await untilFork(second, 1);
  t.is((await headOf(follower)).hash, originalHead.hash);
  t.is((await ask(follower.port, "/health")).status, 503);
  t.like(await healthOf(second), { status: "failing", accepting: false });
  t.regex(await chainFailure(second), /this node's own key, so it produces no blocks and accepts no transactions/);

  const healthCli = await runCli(["health", "--node", `http://127.0.0.1:${follower.port}`]);
  t.is(healthCli.code, 1);
  t.true(healthCli.stdout.includes(await chainFailure(follower)));
  t.true((await ask(follower.port, "/status")).status === 200);

  const rejected = readFailure(await t.throwsAsync(submit(clientOf(t, second), 4)));
  t.is(rejected.reason, "STATE_NOT_READY");
  t.regex(rejected.message, forkAt(1));
  t.is((await headOf(second)).number, 1);

  // The evidence survives restarts of both.
  await follower.stop();
  follower = await follow(false);
  t.regex(await chainFailure(follower), forkAt(1));
  await end(second);
  second = await start(false);
  t.regex(await chainFailure(second), forkAt(1));
  t.like(readFailure(await t.throwsAsync(submit(clientOf(t, second), 4))), { reason: "STATE_NOT_READY" });

  // The operator resolves the fork, here by keeping the follower's side.
  await end(second);
  await follower.stop();
  await cp(join(followerDir, "gatehouse.sqlite"), join(secondDir, "gatehouse.sqlite"));
  second = await start(true);
  follower = await follow(true);
  t.is(await chainFailure(follower), "");
  await submit(clientOf(t, second), 4);
  await untilAt(follower, 3);
  t.is((await headOf(second)).hash, (await headOf(follower)).hash);
  t.is(await chainFailure(second), "");
  t.is(await chainFailure(follower), "");
});

test("detects a fork with a longer chain at the highest common number", async (t) => {
  const dir = await temporaryDirectory(t);
  await seedBlocks(join(dir, "gatehouse.sqlite"), authority, 3);
  const other = await makeBlocks(t, authority, 5);
  const peer = await startOddPeer(t, {
    ...{ key: testKey(50), genesisHash, status: () => statusAt(other.at(-1)), blocks: sendAll(other) },
  });
  const node = await startMemberOf(t, { key: testKey(2), genesis, seeds: [peer.endpoint], dir });
  await untilFork(node, 3);
  t.is((await headOf(node)).number, 3);
  t.false((await healthOf(node)).accepting);
});

test("a signer accepts fork evidence from a peer only if both signatures are valid", async (t) => {
  const [[mine], [theirs]] = [await makeBlocks(t, authority, 1), await makeBlocks(t, authority, 1)];
  const evidence = evidenceOf(mine!, theirs!);
  const faulty = await startOddPeer(t, {
    ...{ key: testKey(50), genesisHash },
    status: () => ({ accepting: true, evidence: [{ ...evidence, otherSignature: evidence.signature }] }),
  });
  const witness = await startOddPeer(t, {
    ...{ key: testKey(51), genesisHash },
    status: () => ({ accepting: true, evidence: [evidence] }),
  });
  const node = await startMemberOf(t, { key: authority, genesis, seeds: [faulty.endpoint] });
  await untilPeerIs(node, /not signed by its proposer/);
  t.is(await chainFailure(node), "");
  await createClient(ControlService, node.control).addPeer({ endpoint: witness.endpoint });
  await untilFork(node, 1);
  t.true((await peersOf(node))[1]!.verification.status);
  t.regex(await chainFailure(node), /this node's own key/);
});

test("accepts no transactions while behind the highest signed header, even of a penalized peer", async (t) => {
  const blocks = await makeBlocks(t, authority, 2);
  const broken = { ...blocks[1]!, transactions: [] } as Block;
  const faulty = await startOddPeer(t, {
    ...{ key: testKey(50), genesisHash, status: () => statusAt(blocks[1]), blocks: sendAll([blocks[0]!, broken]) },
  });
  const honest = await startOddPeer(t, {
    ...{ key: testKey(51), genesisHash, status: () => statusAt(blocks[0]), blocks: sendAll(blocks.slice(0, 1)) },
  });
  const node = await startMemberOf(t, { key: testKey(2), genesis, seeds: [faulty.endpoint, honest.endpoint] });
  await untilPeerIs(node, /It sent an invalid block/);
  await until(async () => (await peersOf(node))[1]!.status.ready);
  t.is((await headOf(node)).number, 1);
  t.false((await healthOf(node)).accepting);
});
