/** An authority produces no block before it knows the latest one. */
import test from "ava";
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { clientOf, submit } from "../helpers/chain/submit.js";
import { testKey } from "../helpers/chain/keys.js";
import {
  endpointOf,
  type HasPort,
  headOf,
  healthOf,
  networkOf,
  type NodeProcess,
  peersOf,
  seedBlocks,
  startMemberOf,
  startProcessOf,
  statusAt,
  untilAt,
  untilPolled,
} from "../helpers/nodes/network.js";
import { freePort } from "../helpers/nodes/free-port.js";
import { startOddPeer } from "../helpers/nodes/odd-peer.js";
import { askJson } from "../helpers/wire/plain-client.js";
import { silentPeer } from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { eventually, until } from "../helpers/nodes/until.js";

const authority = testKey(1);
const { genesis, genesisHash } = networkOf(authority);

/** Returns the reason why a node produces no blocks; empty if there is none. */
const reasonOf = async (node: HasPort): Promise<string> =>
  (await healthOf(node)).subsystems["chain"]!.extra?.reason ?? "";

test("an authority whose peers do not respond waits with a reason, or starts at once with --recover", async (t) => {
  const dir = await temporaryDirectory(t);
  await seedBlocks(join(dir, "gatehouse.sqlite"), authority, 3);
  const member = { key: authority, genesis, seeds: [silentPeer], dir };
  const waiting = await startMemberOf(t, { ...member, flags: { recover: false } });
  await submit(clientOf(t, waiting), 1);
  await untilPolled(waiting);
  t.like(await healthOf(waiting), { accepting: false, subsystems: { chain: { status: "ready" } } });
  const reason = /^The node produces no blocks yet: no verified peer that has block 3 .* --recover\.$/;
  t.regex(await reasonOf(waiting), reason);
  t.is((await headOf(waiting)).number, 3);
  await waiting.stop();

  const recovered = await startMemberOf(t, { ...member, flags: { recover: true } });
  await untilAt(recovered, 4);
  await until(async () => (await healthOf(recovered)).accepting);
  t.is(await reasonOf(recovered), "");
});

test("only a peer with as many blocks as the authority confirms the latest block", async (t) => {
  const dir = await temporaryDirectory(t);
  const blocks = await seedBlocks(join(dir, "gatehouse.sqlite"), authority, 3);
  let number = 2;
  const peer = await startOddPeer(t, { key: testKey(50), genesisHash, status: () => statusAt(blocks[number - 1]) });
  const flags = { recover: false };
  const node = await startMemberOf(t, { key: authority, genesis, seeds: [peer.endpoint], dir, flags });
  await submit(clientOf(t, node), 1);
  await until(async () => (await peersOf(node))[0]?.sync.block === 2);
  await untilPolled(node);
  t.like(await healthOf(node), { accepting: false });
  t.is((await headOf(node)).number, 3);
  number = 3;
  await untilAt(node, 4);
});

test("an authority without peers produces blocks alone, but needs --recover for an empty database", async (t) => {
  const dir = await temporaryDirectory(t);
  const flags = { recover: false };
  const lost = await startMemberOf(t, { key: authority, genesis, dir, flags });
  await submit(clientOf(t, lost), 1);
  await until(async () => (await reasonOf(lost)) !== "");
  t.regex(await reasonOf(lost), /its database has none, and no peer has confirmed that none exist/);
  t.false((await healthOf(lost)).accepting);
  await lost.stop();
  // An earlier start does not count: the database still has no blocks.
  const again = await startMemberOf(t, { key: authority, genesis, dir, flags });
  await until(async () => (await reasonOf(again)) !== "");
  await again.stop();
  const started = await startMemberOf(t, { key: authority, genesis, dir });
  await untilAt(started, 1);
  await started.stop();
  const third = await startMemberOf(t, { key: authority, genesis, dir, flags });
  await submit(clientOf(t, third), 2);
  await untilAt(third, 2);
});

test("two nodes of a new network need no --recover: each confirms that no block exists", async (t) => {
  const flags = { recover: false };
  const first = await startMemberOf(t, { key: authority, genesis, flags });
  await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(first)], flags });
  await submit(clientOf(t, first), 1);
  await untilAt(first, 1);
  t.is(await reasonOf(first), "");
});

/** Starts a follower process. Returns a function that starts the authority, always in one directory. */
async function startPair(t: Teardown) {
  const ports = { "rpc-port": String(await freePort()), "omni-port": String(await freePort()), "port-drift": "deny" };
  const dir = await temporaryDirectory(t);
  const seeds = [`https://127.0.0.1:${ports["omni-port"]}`];
  const follower = await startProcessOf(t, { key: testKey(2), genesis, seeds });
  const start = (recover: boolean): Promise<NodeProcess> =>
    startProcessOf(t, { key: authority, genesis, dir, seeds: [endpointOf(follower)], flags: { ...ports, recover } });
  return { dir, follower, start };
}

for (const isCopied of [true, false]) {
  const label = isCopied ? "whose database is an older copy" : "that has lost its database";
  test(`an authority ${label} syncs its blocks from a follower, without a fork`, async (t) => {
    t.timeout(180_000);
    const { dir, follower, start } = await startPair(t);
    let node = await start(true);
    await submit(clientOf(t, node), 1);
    await untilAt(follower, 1);
    node.child.kill("SIGTERM");
    await node.ended;
    const copy = await temporaryDirectory(t);
    await cp(dir, copy, { recursive: true });
    node = await start(false);
    for (const nonce of [2, 3]) {
      await submit(clientOf(t, node), nonce);
      await untilAt(follower, nonce);
    }
    const head = await headOf(follower);
    node.child.kill("SIGKILL");
    await node.ended;
    for (const name of ["", "-wal", "-shm"]) {
      await rm(join(dir, `gatehouse.sqlite${name}`), { force: true });
    }
    if (isCopied) {
      await cp(copy, dir, { recursive: true });
    }

    // While no peer responds, the authority produces nothing.
    follower.child.kill("SIGSTOP");
    const waiting = await start(false);
    await submit(clientOf(t, waiting), 4);
    await untilPolled(waiting);
    t.true((await headOf(waiting)).number < 3);
    t.false((await healthOf(waiting)).accepting);
    follower.child.kill("SIGCONT");
    // The authority has all blocks, and produces the next one.
    await untilAt(waiting, 4);
    t.is((await askJson<{ hash: string }>(waiting.port, "/chain/blocks/3")).hash, head.hash);
    await eventually("both have the block", async () => (await headOf(follower)).hash === (await headOf(waiting)).hash);
  });
}
