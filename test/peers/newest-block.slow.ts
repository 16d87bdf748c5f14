/** An authority produces no block before it knows the latest one. */
import test from "ava";
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { connectGrpc } from "../helpers/wire/grpc-client.js";
import { testKey } from "../helpers/chain/keys.js";
import {
  endpointOf,
  headOf,
  networkOf,
  type NodeProcess,
  peersOf,
  seedBlocks,
  startMemberOf,
  startProcessOf,
} from "../helpers/nodes/network.js";
import { freePort } from "../helpers/nodes/free-port.js";
import { startOddPeer } from "../helpers/nodes/odd-peer.js";
import { askJson } from "../helpers/wire/plain-client.js";
import { silentPeer } from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { eventually, until } from "../helpers/nodes/until.js";

const authority = testKey(1);
const { genesis, genesisHash } = networkOf(authority);

interface Health {
  readonly accepting: boolean;
  readonly main_loop: { readonly iterations_total: number };
  readonly subsystems: { readonly chain: { readonly status: string; readonly extra?: { readonly reason?: string } } };
}

const health = ({ port }: { readonly port: number }): Promise<Health> => askJson<Health>(port, "/health");
const reasonOf = async (node: { readonly port: number }): Promise<string> =>
  (await health(node)).subsystems.chain.extra?.reason ?? "";

/** Submits a transaction. A node accepts it even while it produces no blocks. */
async function submit(t: Teardown, { port }: { readonly port: number }, nonce: number): Promise<void> {
  const client = connectGrpc(port);
  t.teardown(() => client.close());
  const transaction = signTransaction(testKey(90), nonce, createPublic(`p${nonce}`, "{}"));
  await client.call(ChainService.method.submitTransaction, { transaction });
}

/** Waits until the node has polled all peers three times. */
async function untilPolled(node: { readonly port: number }): Promise<void> {
  await until(async () => (await health(node)).main_loop.iterations_total >= 3);
}

test("an authority whose peers do not respond waits with a reason, or starts at once with --recover", async (t) => {
  const dir = await temporaryDirectory(t);
  await seedBlocks(join(dir, "gatehouse.sqlite"), authority, 3);
  const member = { key: authority, genesis, seeds: [silentPeer], dir };
  const waiting = await startMemberOf(t, { ...member, flags: { recover: false } });
  await submit(t, waiting, 1);
  await untilPolled(waiting);
  t.like(await health(waiting), { accepting: false, subsystems: { chain: { status: "ready" } } });
  t.regex(
    await reasonOf(waiting),
    /^The node produces no blocks yet: no verified peer that has block 3 .* --recover\.$/,
  );
  t.is((await headOf(waiting)).number, 3);
  await waiting.stop();

  const recovered = await startMemberOf(t, { ...member, flags: { recover: true } });
  await until(async () => (await headOf(recovered)).number === 4);
  await until(async () => (await health(recovered)).accepting);
  t.is(await reasonOf(recovered), "");
});

test("only a peer with as many blocks as the authority confirms the latest block", async (t) => {
  const dir = await temporaryDirectory(t);
  const blocks = await seedBlocks(join(dir, "gatehouse.sqlite"), authority, 3);
  const statusWith = (number: number) => {
    const block = blocks[number - 1]!;
    return { headHeader: block.header, headSignature: block.signature, accepting: true };
  };
  let number = 2;
  const peer = await startOddPeer(t, { key: testKey(50), genesisHash, status: () => statusWith(number) });
  const flags = { recover: false };
  const node = await startMemberOf(t, { key: authority, genesis, seeds: [peer.endpoint], dir, flags });
  await submit(t, node, 1);
  await until(async () => (await peersOf(node))[0]?.sync.block === 2);
  await untilPolled(node);
  t.like(await health(node), { accepting: false });
  t.is((await headOf(node)).number, 3);
  number = 3;
  await until(async () => (await headOf(node)).number === 4);
});

test("an authority without peers produces blocks alone, but needs --recover for an empty database", async (t) => {
  const dir = await temporaryDirectory(t);
  const flags = { recover: false };
  const lost = await startMemberOf(t, { key: authority, genesis, dir, flags });
  await submit(t, lost, 1);
  await until(async () => (await reasonOf(lost)) !== "");
  t.regex(await reasonOf(lost), /its database has none, and no peer has confirmed that none exist/);
  t.false((await health(lost)).accepting);
  await lost.stop();
  // An earlier start does not count: the database still has no blocks.
  const again = await startMemberOf(t, { key: authority, genesis, dir, flags });
  await until(async () => (await reasonOf(again)) !== "");
  await again.stop();
  const started = await startMemberOf(t, { key: authority, genesis, dir });
  await until(async () => (await headOf(started)).number === 1);
  await started.stop();
  const third = await startMemberOf(t, { key: authority, genesis, dir, flags });
  await submit(t, third, 2);
  await until(async () => (await headOf(third)).number === 2);
});

test("two nodes of a new network need no --recover: each confirms that no block exists", async (t) => {
  const flags = { recover: false };
  const first = await startMemberOf(t, { key: authority, genesis, flags });
  await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(first)], flags });
  await submit(t, first, 1);
  await until(async () => (await headOf(first)).number === 1);
  t.is(await reasonOf(first), "");
});

/** Starts a follower process. Returns a function that starts the authority, always in one directory. */
async function startPair(t: Teardown) {
  const ports = { "rpc-port": String(await freePort()), "omni-port": String(await freePort()), "port-drift": "deny" };
  const dir = await temporaryDirectory(t);
  const follower = await startProcessOf(t, {
    key: testKey(2),
    genesis,
    seeds: [`https://127.0.0.1:${ports["omni-port"]}`],
  });
  const start = (recover: boolean): Promise<NodeProcess> =>
    startProcessOf(t, { key: authority, genesis, dir, seeds: [endpointOf(follower)], flags: { ...ports, recover } });
  return { dir, follower, start };
}

for (const [label, lose] of [
  [
    "whose database is an older copy",
    async (dir: string, copy: string) => {
      await removeDatabase(dir);
      await cp(copy, dir, { recursive: true });
    },
  ],
  ["that has lost its database", (dir: string) => removeDatabase(dir)],
] as const) {
  test(`an authority ${label} syncs its blocks from a follower, without a fork`, async (t) => {
    t.timeout(180_000);
    const { dir, follower, start } = await startPair(t);
    let node = await start(true);
    await submit(t, node, 1);
    await eventually("both have a block", async () => (await headOf(follower)).number === 1);
    node.child.kill("SIGTERM");
    await node.ended;
    const copy = await temporaryDirectory(t);
    await cp(dir, copy, { recursive: true });
    node = await start(false);
    for (const nonce of [2, 3]) {
      await submit(t, node, nonce);
      await eventually("both have the block", async () => (await headOf(follower)).number === nonce);
    }
    const head = await headOf(follower);
    node.child.kill("SIGKILL");
    await node.ended;
    await lose(dir, copy);

    // While no peer responds, the authority produces nothing.
    follower.child.kill("SIGSTOP");
    const waiting = await start(false);
    await submit(t, waiting, 4);
    await untilPolled(waiting);
    t.true((await headOf(waiting)).number < 3);
    t.false((await health(waiting)).accepting);
    follower.child.kill("SIGCONT");
    await eventually(
      "the authority has all blocks and produces the next one",
      async () => (await headOf(waiting)).number === 4,
    );
    t.is((await askJson<{ hash: string }>(waiting.port, "/chain/blocks/3")).hash, head.hash);
    await eventually("both have the block", async () => (await headOf(follower)).hash === (await headOf(waiting)).hash);
  });
}

async function removeDatabase(dir: string): Promise<void> {
  for (const name of ["", "-wal", "-shm"]) {
    await rm(join(dir, `gatehouse.sqlite${name}`), { force: true });
  }
}
