/** Block sync from honest and from faulty peers. */
import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import test from "ava";
import { setTimeout as sleep } from "node:timers/promises";
import { type Block, BlockSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { ConsensusService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { signBlock } from "../../src/chain/transactions/transaction.js";
import { anyRoots } from "../helpers/chain/seed.js";
import { testKey, type TestKey } from "../helpers/chain/keys.js";
import { clientOf, submit } from "../helpers/chain/submit.js";
import {
  endpointOf,
  headOf,
  healthOf,
  makeBlocks,
  networkOf,
  peersOf,
  sendAll,
  startMemberOf,
  statusAt,
  untilAt,
  untilPeerIs,
} from "../helpers/nodes/network.js";
import { type OddPeer, startOddPeer } from "../helpers/nodes/odd-peer.js";
import { askJson } from "../helpers/wire/plain-client.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import type { TestNode } from "../helpers/nodes/start-node.js";
import { until } from "../helpers/nodes/until.js";

const authority = testKey(1);
const { genesis, genesisHash } = networkOf(authority);

/** Starts a node that is not an authority, and applies blocks as a consensus process would. */
async function startWith(t: Teardown, blocks: readonly Block[]): Promise<TestNode> {
  const node = await startMemberOf(t, { key: testKey(2), genesis });
  const consensus = createClient(ConsensusService, node.control);
  for (const block of blocks) {
    await consensus.applyBlock({ block });
  }
  return node;
}

/** Returns a block 1 without transactions that this key has signed. */
function signEmpty(key: TestKey): Block {
  const header = { number: 1n, previousHash: genesisHash, timestampMs: BigInt(Date.now()), genesisHash, ...anyRoots };
  return signBlock({ ...header, proposer: key.publicKey }, [], (bytes) => key.sign(bytes)).signed;
}

test("follows the blocks of a peer to its head, and accepts transactions only then", async (t) => {
  const source = await startWith(t, await makeBlocks(t, authority, 60));
  const node = await startMemberOf(t, { key: testKey(3), genesis, seeds: [endpointOf(source)] });
  const seen: boolean[] = [];
  await until(async () => {
    const [{ accepting }, { number }] = [await healthOf(node), await headOf(node)];
    if (accepting) {
      seen.push(number === 60);
    }
    return accepting;
  });
  t.deepEqual(seen, [true]);
  t.is((await headOf(node)).hash, (await headOf(source)).hash);
  t.is((await askJson<{ count: number }>(node.port, "/storage-program/search?q=program&limit=200")).count, 60);
});

test("announces a new block at once, not with the next tick", async (t) => {
  const blocks = await makeBlocks(t, authority, 20);
  const slow = { "loop-interval": "3600" };
  const source = await startMemberOf(t, { key: testKey(2), genesis, flags: slow });
  const node = await startMemberOf(t, { key: testKey(3), genesis, seeds: [endpointOf(source)], flags: slow });
  await until(async () => (await peersOf(source))[0]?.verification.status === true);
  const consensus = createClient(ConsensusService, source.control);
  let acknowledged = 0;
  for (const [i, block] of blocks.entries()) {
    await consensus.applyBlock({ block });
    await untilAt(node, i + 1);
    // The source learns from the response that the peer has the block. A busy machine may lose one of the responses.
    for (let tries = 0; tries < 20 && acknowledged <= i; tries++) {
      await sleep(50);
      acknowledged = (await peersOf(source))[0]!.sync.block ?? 0;
    }
    if (i >= 2 && acknowledged === i + 1) {
      break;
    }
  }
  t.true(acknowledged >= 3);
  t.is((await headOf(node)).hash, (await headOf(source)).hash);
});

test("drops a peer that sends anything but the next block, and follows another one", async (t) => {
  const blocks = await makeBlocks(t, authority, 20);
  const last = blocks.at(-1)!;
  const forge = (block: Block): Block => create(BlockSchema, { ...block, signature: new Uint8Array(64) });
  // The authority has signed this block, so the head is valid, but its state root is wrong.
  const badRoot = signEmpty(authority);
  const bad: Record<string, NonNullable<OddPeer["blocks"]>> = {
    "a bad signature": async (from, send) => send(forge(blocks[Number(from) - 1]!)),
    "a bad root": async (_, send) => send(badRoot),
    "a gap": async (from, send) => send(blocks[Number(from)]!),
    "no block": async (_, send) => send(undefined),
    "an empty stream": () => Promise.resolve(),
    "one block repeatedly": async (from, send) => {
      for (;;) {
        await send(blocks[Number(from)]!);
      }
    },
    "old blocks endlessly": async (_, send) => {
      for (let i = 0; ; i++) {
        await send(i === 0 ? blocks[0] : badRoot);
      }
    },
  };
  // The authority has signed two blocks with one number: the node continues, and reports the fork.
  const forks = new Set(["a bad root", "old blocks endlessly"]);
  for (const [label, stream] of Object.entries(bad)) {
    let statusRequests = 0;
    const status = () => {
      statusRequests++;
      return statusAt(last);
    };
    const faulty = await startOddPeer(t, { key: testKey(50), genesisHash, status, blocks: stream });
    const flags = { "loop-interval": "0.05" };
    const node = await startMemberOf(t, { key: testKey(3), genesis, seeds: [faulty.endpoint], flags });
    await untilPeerIs(node, /It (sent an invalid block|did not send block 20)/);
    t.like((await peersOf(node))[0], { verification: { status: true }, status: { ready: false } }, label);
    t.true((await headOf(node)).number <= 1, label);
    t.false((await healthOf(node)).accepting, label);
    // The node requests no blocks from it for a while, however often it reports its head.
    const { calls } = faulty;
    const requestsBefore = statusRequests;
    await until(() => statusRequests >= requestsBefore + 5);
    t.is(faulty.calls, calls, label);

    await addHonestPeer(t, node, blocks);
    await untilAt(node, 20);
    await until(async () => (await healthOf(node)).status === (forks.has(label) ? "failing" : "ok"));
    await node.stop();
  }
});

/** Adds a peer that sends all of these blocks. */
async function addHonestPeer(t: Teardown, node: TestNode, blocks: readonly Block[]): Promise<void> {
  const status = () => statusAt(blocks.at(-1)!);
  const honest = await startOddPeer(t, { key: testKey(51), genesisHash, status, blocks: sendAll(blocks) });
  await createClient(ControlService, node.control).addPeer({ endpoint: honest.endpoint });
}

test("drops a peer that stalls for 10 s, and reports the sync progress meanwhile", async (t) => {
  const blocks = await makeBlocks(t, authority, 10);
  const slow = await startOddPeer(t, {
    ...{ key: testKey(50), genesisHash, status: () => statusAt(blocks.at(-1)) },
    async blocks(from, send) {
      await send(blocks[Number(from) - 1]);
      await sleep(60_000, undefined, { ref: false });
    },
  });
  const node = await startMemberOf(t, { key: testKey(3), genesis, seeds: [slow.endpoint] });
  const mainLoop = async () => (await healthOf(node)).subsystems["main_loop"]!;
  await untilAt(node, 1);
  // The progress is shown each second, so that it may be of the time before block 1.
  await until(async () => (await mainLoop()).extra?.sync?.["block"] === 1);
  const { sync } = (await mainLoop()).extra!;
  t.like(sync, { block: 1, targetBlock: 10, peer: slow.endpoint });
  t.is(typeof sync!["blocks_per_s"], "number");
  t.true(sync!["left_s"] === null || Number.isInteger(sync!["left_s"]));
  t.false((await healthOf(node)).accepting);
  await addHonestPeer(t, node, blocks);
  await untilAt(node, 10);
  await until(async () => (await mainLoop()).extra === undefined);
  await untilPeerIs(node, /It sent no block for 10 s/);
  t.pass();
});

test("prefers peers that sent blocks to those that only report them", async (t) => {
  const blocks = await makeBlocks(t, authority, 20);
  let head = 10;
  const status = () => statusAt(blocks[head - 1]!);
  const honest = await startOddPeer(t, {
    ...{ key: testKey(51), genesisHash, status },
    blocks: (from, send) => sendAll(blocks.slice(0, head))(from, send),
  });
  const flags = { "loop-interval": "0.05" };
  const node = await startMemberOf(t, { key: testKey(3), genesis, seeds: [honest.endpoint], flags });
  await untilAt(node, 10);
  const control = createClient(ControlService, node.control);
  for (const key of [61, 62, 63, 64]) {
    const silent = await startOddPeer(t, {
      ...{ key: testKey(key), genesisHash, status: () => statusAt(blocks[19]!) },
      blocks: () => sleep(60_000, undefined, { ref: false }),
    });
    await control.addPeer({ endpoint: silent.endpoint });
    await until(() => silent.calls > 0);
    // The honest peer does not report the next block until this one was asked, and has it soon after.
    head++;
    const sinceMs = performance.now();
    await untilAt(node, head);
    t.log(`block ${head} after ${Math.round(performance.now() - sinceMs)} ms`);
  }
  // Those that are asked for the full time are paused, with this reason.
  t.notRegex((await peersOf(node)).map((peer) => peer.verification.message ?? "").join(), /sent no block for 10 s/);
});

test("ignores a head that no authority has signed", async (t) => {
  const block = signEmpty(testKey(60));
  const peer = await startOddPeer(t, { key: testKey(50), genesisHash, status: () => statusAt(block) });
  const node = await startMemberOf(t, { key: authority, genesis, seeds: [peer.endpoint] });
  await untilPeerIs(node, /not signed by an authority/);
  await until(async () => (await healthOf(node)).accepting);
  t.is((await peersOf(node))[0]!.sync.block, null);
});

test("an authority that lost its latest blocks syncs them from its peers before it produces new ones", async (t) => {
  const follower = await startWith(t, await makeBlocks(t, authority, 5));
  const restored = await startMemberOf(t, { key: authority, genesis, seeds: [endpointOf(follower)] });
  await submit(clientOf(t, restored), 1);
  await untilAt(restored, 6);
  await untilAt(follower, 6);
  t.is((await headOf(follower)).hash, (await headOf(restored)).hash);
  const fifth = await askJson<{ hash: string }>(restored.port, "/chain/blocks/5");
  t.is(fifth.hash, (await askJson<{ hash: string }>(follower.port, "/chain/blocks/5")).hash);
});
