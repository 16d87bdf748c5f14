/** Node keys: one key in two processes, which detect each other, and a lost key, as in docs/operations.md. */
import test from "ava";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import type { PeerClient } from "../../src/peers/handshake/client.js";
import { createDuplicateIdentities, createKeyMonitor } from "../../src/peers/handshake/duplicate-keys.js";
import { entryOf } from "../../src/peers/address-book/peer.js";
import { testKey, writeKey } from "../helpers/chain/keys.js";
import {
  chainFailure,
  endpointOf,
  headOf,
  healthOf,
  networkOf,
  peersOf,
  startMemberOf,
  untilAt,
  untilPeerIs,
  untilReady,
} from "../helpers/nodes/network.js";
import { startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { clientOf, statusOf, submit } from "../helpers/chain/submit.js";
import { eventually, until } from "../helpers/nodes/until.js";

const authority = testKey(1);
const { genesis } = networkOf(authority);

/** Submits a transaction, and returns a function that reads its status. */
async function submitTo(t: Teardown, node: TestNode, nonce: number): Promise<() => Promise<TransactionStatus>> {
  const client = clientOf(t, node);
  const hash = await submit(client, nonce);
  return async () => (await statusOf(client, hash)).status;
}

/** Restarts a node in its directory and on its ports, with the key in the key file. */
async function startAgain(t: Teardown, { dir, ports }: TestNode, recover: boolean): Promise<TestNode> {
  const files = { genesis: join(dir, "genesis.json"), peers: join(dir, "peers.json") };
  const flags = { "rpc-port": String(ports.rpc), "omni-port": String(ports["omni"]), recover };
  return await startTestNode(t, { ...files, ...flags, "loop-interval": "0.2", "allow-private-peers": true }, dir);
}

test("two processes with one key and a common peer are reported by all three nodes", async (t) => {
  t.timeout(180_000);
  const first = await startMemberOf(t, { key: authority, genesis });
  const follower = await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(first)] });
  await until(async () => (await peersOf(first))[0]?.verification.status === true);
  t.is(await chainFailure(first), "");
  const copy = await startMemberOf(t, { key: authority, genesis, seeds: [endpointOf(follower)] });
  const two = new RegExp(`^Two processes use the key ${authority.publicKey} of an authority`);
  await eventually("the follower reports it", async () => two.test(await chainFailure(follower)));
  const another = new RegExp(`^Another process uses this node's key ${authority.publicKey}, at https`);
  for (const node of [first, copy]) {
    await eventually("the processes detect each other", async () => another.test(await chainFailure(node)));
  }
  t.is((await healthOf(first)).status, "failing");
  // The operator decides which one to stop. The block producer continues.
  await submitTo(t, first, 1);
  await untilAt(follower, 1);
  t.is((await headOf(first)).hash, (await headOf(follower)).hash);
});

test("a network without its authority's key serves reads, and produces blocks once it is restored", async (t) => {
  t.timeout(180_000);
  const producer = await startMemberOf(t, { key: authority, genesis });
  const follow = (number: number, seed: TestNode) =>
    startMemberOf(t, { key: testKey(number), genesis, seeds: [endpointOf(seed)], flags: { recover: false } });
  const follower = await follow(2, producer);
  await writeFile(join(producer.dir, "peers.json"), JSON.stringify([{ url: endpointOf(follower) }]));
  const another = await follow(3, follower);
  await submitTo(t, producer, 1);
  await untilAt(another, 1);
  await producer.stop();
  const lost = join(producer.dir, "identity.key");
  await rm(lost);

  await until(async () => (await peersOf(follower)).some(({ status }) => !status.online));
  // The other nodes do not know that the key is lost, and accept transactions until they expire.
  await until(async () => (await healthOf(follower)).accepting);
  t.is((await healthOf(follower)).status, "ok");
  const status = await submitTo(t, follower, 2);
  const missingKey = new RegExp(`belongs to the node ${authority.publicKey}, whose key is not at .* Restore the key`);
  await t.throwsAsync(startAgain(t, producer, false), { message: missingKey });
  const replacement = await startAgain(t, producer, true);
  t.not(replacement.publicKey, authority.publicKey);
  await untilReady(replacement);
  t.is((await headOf(replacement)).number, 1);
  t.is(await status(), TransactionStatus.PENDING);
  await replacement.stop();

  await rm(lost);
  await writeKey(lost, authority);
  // The database belongs to the new key now.
  const wrongKey = new RegExp(`belongs to the node ${replacement.publicKey}; this key is ${authority.publicKey}`);
  await t.throwsAsync(startAgain(t, producer, false), { message: wrongKey });
  await startAgain(t, producer, true);
  await until(async () => (await status()) === TransactionStatus.INCLUDED);
});

test("a node that lost its key continues with a new one, once peers files do not name the old key", async (t) => {
  const node = await startMemberOf(t, { key: testKey(2), genesis, flags: { recover: false } });
  const named = { url: endpointOf(node), identity: node.publicKey };
  const member = { key: authority, genesis };
  const producer = await startMemberOf(t, { ...member, seeds: [named] });
  await submitTo(t, producer, 1);
  await untilAt(node, 1);
  await node.stop();
  await rm(join(node.dir, "identity.key"));
  await writeFile(join(node.dir, "peers.json"), JSON.stringify([{ url: endpointOf(producer) }]));
  await t.throwsAsync(startAgain(t, node, false), { message: /whose key is not at/ });
  const again = await startAgain(t, node, true);
  t.not(again.publicKey, node.publicKey);
  await untilPeerIs(
    producer,
    new RegExp(
      `proved the identity ${again.publicKey}, and not the expected ${node.publicKey}.*correct the peers file`,
    ),
  );
  await again.stop();

  // After the peers file changes, nothing remembers the old key.
  await producer.stop();
  await writeFile(join(producer.dir, "peers.json"), "[]");
  const updated = await startAgain(t, producer, false);
  const third = await startAgain(t, node, false);
  t.is(third.publicKey, again.publicKey, "--recover was needed once.");
  await until(async () =>
    (await peersOf(updated)).some(({ identity, verification }) => identity === third.publicKey && verification.status),
  );
});

test("a restarted or moved node is not reported as a second process", async (t) => {
  const first = await startMemberOf(t, { key: authority, genesis });
  const follower = await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(first)] });
  await until(async () => (await peersOf(follower))[0]?.status.online === true);
  await first.stop();
  const moved = await startMemberOf(t, { key: authority, genesis, seeds: [endpointOf(follower)], dir: first.dir });
  await untilReady(moved);
  t.is(await chainFailure(moved), "");
  t.is(await chainFailure(follower), "");
});

test("polls a reported duplicate, and forgets it after a minute without it", async (t) => {
  let nowMs = 0;
  let response: { readonly identity: string; readonly instanceId: Buffer } | undefined;
  const client = {
    call: () => (response === undefined ? Promise.reject(new Error("away")) : Promise.resolve(response)),
    identityOf: () => response?.identity,
    drop: () => undefined,
  } as unknown as PeerClient;
  const reported: (readonly string[])[] = [];
  const self = { key: authority, instanceId: Buffer.alloc(16, 1) };
  const onChange = (endpoints: readonly string[]): unknown => reported.push(endpoints);
  const keys = createKeyMonitor({ self, client, monotonicMs: () => nowMs, onChange });
  await keys.poll();
  t.deepEqual(reported, []);
  keys.report("https://a.test:1");
  keys.report("https://a.test:1");
  t.deepEqual(reported, [["https://a.test:1"]]);
  response = { identity: authority.publicKey, instanceId: Buffer.alloc(16, 2) };
  nowMs = 50_000;
  await keys.poll();
  for (const other of [
    undefined,
    { identity: testKey(2).publicKey, instanceId: Buffer.alloc(16, 2) },
    { identity: authority.publicKey, instanceId: Buffer.alloc(16, 1) },
  ]) {
    response = other;
    nowMs = 110_000;
    await keys.poll();
    t.is(reported.length, 1);
  }
  nowMs = 110_001;
  await keys.poll();
  t.deepEqual(reported, [["https://a.test:1"], []]);
});

test("an identity has two processes if its holder responds after another endpoint was seen", (t) => {
  let nowMs = 1_000;
  const [duplicates, second] = [createDuplicateIdentities(() => nowMs), "https://b.test:1"];
  const found = (lastSeenMs: number, changes: { readonly endpoint?: string; readonly announced?: string } = {}) =>
    duplicates.endpointOf({
      ...entryOf({ endpoint: "a", origin: "handshake", identity: "0x1" }),
      ...{ lastSeenMs, ...changes },
    });
  t.is(duplicates.endpointOf(undefined), undefined);
  t.is(found(2_000), undefined);
  duplicates.record("0x1", second);
  t.is(found(900), undefined);
  t.is(found(1_001), second);
  // A second handshake before the next poll of the holder does not end the alarm.
  nowMs = 60_000;
  duplicates.record("0x1", second);
  t.is(found(59_999), second);
  t.is(found(59_999, { endpoint: second }), undefined, "The holder has moved there.");
  t.is(found(59_999, { announced: second }), undefined, "The holder announces that address.");
  nowMs = 200_000;
  t.is(found(199_999), undefined);
  duplicates.record("0x1", second);
  t.is(found(199_999), undefined, "The earlier record has expired.");
});
