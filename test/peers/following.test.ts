/** Readiness of a node that follows the blocks of a peer. */
import test from "ava";
import type { Block } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { createMissingBlocks } from "../../src/chain/blocks/missing-blocks.js";
import { testKey } from "../helpers/chain/keys.js";
import { healthOf, makeBlocks, networkOf, startMemberOf, statusAt, untilAt } from "../helpers/nodes/network.js";
import { startOddPeer } from "../helpers/nodes/odd-peer.js";
import type { TestNode } from "../helpers/nodes/start-node.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { ask } from "../helpers/wire/plain-client.js";

const authority = testKey(1);
const { genesis, genesisHash } = networkOf(authority);

const isReady = async ({ port }: TestNode): Promise<boolean> => (await ask(port, "/readyz")).status === 200;

/** Starts a node whose only peer has these blocks, and sends them only after `release`. */
async function startFollower(t: Teardown, blocks: readonly Block[]) {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  t.teardown(() => release());
  const peer = await startOddPeer(t, {
    ...{ key: testKey(50), genesisHash, status: () => statusAt(blocks.at(-1)) },
    async blocks(from, send) {
      await released;
      for (const block of blocks.slice(Number(from) - 1)) {
        await send(block);
      }
    },
  });
  const node = await startMemberOf(t, { key: testKey(3), genesis, seeds: [peer.endpoint] });
  await until(() => peer.calls > 0, "a request for blocks");
  return { node, release };
}

test("a node that waits for the latest block is ready, though not synced", async (t) => {
  const { node, release } = await startFollower(t, await makeBlocks(t, authority, 1));
  await until(() => isReady(node), "ready");
  t.false((await healthOf(node)).accepting);
  release();
  await untilAt(node, 1);
  await until(async () => (await healthOf(node)).accepting, "accepting");
  t.true(await isReady(node));
});

test("a node that lacks more than ten blocks is not ready", async (t) => {
  const { node, release } = await startFollower(t, await makeBlocks(t, authority, 11));
  await until(async () => (await healthOf(node)).main_loop.iterations_total > 0, "a tick");
  t.false(await isReady(node));
  release();
  await untilAt(node, 11);
  await until(() => isReady(node), "ready");
});

test("a block is missing from its announcement until it is stored", (t) => {
  let nowMs = 0;
  const missing = createMissingBlocks(() => nowMs);
  t.is(missing.missingForMs(0n), 0);
  for (const number of [3n, 5n, 4n]) {
    missing.announce(number);
    nowMs += 100;
  }
  t.is(missing.latestNumber(), 5n);
  t.is(missing.missingForMs(2n), 300);
  t.is(missing.missingForMs(3n), 200);
  missing.removeStored(5n);
  t.is(missing.missingForMs(5n), 0);
  // Far behind, the time of the last announcements may be too early, but no block is forgotten.
  for (let number = 6n; number < 2_000n; number++) {
    missing.announce(number);
  }
  nowMs += 1;
  t.is(missing.missingForMs(5n), 1);
  t.is(missing.missingForMs(1_998n), 1);
  t.is(missing.missingForMs(1_999n), 0);
});
