/** Node keys: one key in two processes, which detect each other, and a lost key, as in docs/operations.md. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test from "ava";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import type { PeerClient } from "../../src/peers/handshake/client.js";
import { createDuplicateIdentities, createKeyMonitor } from "../../src/peers/handshake/duplicate-keys.js";
import { entryOf } from "../../src/peers/address-book/peer.js";
import { testKey, writeKey } from "../helpers/chain/keys.js";
import { endpointOf, headOf, networkOf, peersOf, startMemberOf } from "../helpers/nodes/network.js";
import { askJson } from "../helpers/wire/plain-client.js";
import { startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { eventually, until } from "../helpers/nodes/until.js";

const authority = testKey(1);
const { genesis } = networkOf(authority);

interface Health {
  readonly status: string;
  readonly accepting: boolean;
  readonly subsystems: { readonly chain: { readonly status: string; readonly lastError: { message: string } | null } };
}

/** The error of the chain subsystem; empty if it has not failed. */
async function failureOf({ port }: { readonly port: number }): Promise<string> {
  const { chain } = (await askJson<Health>(port, "/health")).subsystems;
  return chain.status === "failed" ? chain.lastError!.message : "";
}

const clientOf = ({ rpcUrl }: TestNode) => createClient(ChainService, createGrpcTransport({ baseUrl: rpcUrl }));

/** Submits a transaction, and returns a function that reads its status. */
async function submit(node: TestNode, nonce: number): Promise<() => Promise<TransactionStatus>> {
  const transaction = signTransaction(testKey(90), nonce, createPublic(`p${nonce}`, "{}"));
  await clientOf(node).submitTransaction({ transaction });
  const hash = sha256(transaction.body);
  return async () => (await clientOf(node).getTransaction({ hash })).status;
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
  t.is(await failureOf(first), "");
  const copy = await startMemberOf(t, { key: authority, genesis, seeds: [endpointOf(follower)] });
  await eventually("the follower reports it", async () =>
    new RegExp(`^Two processes use the key ${authority.publicKey} of an authority`).test(await failureOf(follower)),
  );
  for (const node of [first, copy]) {
    await eventually("the processes detect each other", async () =>
      new RegExp(`^Another process uses this node's key ${authority.publicKey}, at https`).test(await failureOf(node)),
    );
  }
  t.is((await askJson<Health>(first.port, "/health")).status, "failing");
  // The operator decides which one to stop. The block producer continues.
  await submit(first, 1);
  await until(async () => (await headOf(follower)).number === 1);
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
  await submit(producer, 1);
  await until(async () => (await headOf(another)).number === 1);
  await producer.stop();
  const lost = join(producer.dir, "identity.key");
  await rm(lost);

  await until(async () => (await peersOf(follower)).some(({ status }) => !status.online));
  // The other nodes do not know that the key is lost, and accept transactions until they expire.
  await until(async () => (await askJson<Health>(follower.port, "/health")).accepting);
  t.is((await askJson<Health>(follower.port, "/health")).status, "ok");
  const status = await submit(follower, 2);
  const missingKey = new RegExp(`belongs to the node ${authority.publicKey}, whose key is not at .* Restore the key`);
  await t.throwsAsync(startAgain(t, producer, false), { message: missingKey });
  const replacement = await startAgain(t, producer, true);
  t.not(replacement.publicKey, authority.publicKey);
  await until(async () => (await peersOf(replacement)).some(({ status: { ready } }) => ready));
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
  await submit(producer, 1);
  await until(async () => (await headOf(node)).number === 1);
  await node.stop();
  await rm(join(node.dir, "identity.key"));
  await writeFile(join(node.dir, "peers.json"), JSON.stringify([{ url: endpointOf(producer) }]));
  await t.throwsAsync(startAgain(t, node, false), { message: /whose key is not at/ });
  const again = await startAgain(t, node, true);
  t.not(again.publicKey, node.publicKey);
  const unexpectedKey = new RegExp(`proved the identity ${again.publicKey}, which is not the expected one`);
  await until(async () =>
    (await peersOf(producer)).some(({ verification: { message } }) => unexpectedKey.test(message ?? "")),
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
  await until(async () => (await peersOf(moved))[0]?.status.ready === true);
  t.is(await failureOf(moved), "");
  t.is(await failureOf(follower), "");
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
  const keys = createKeyMonitor({
    self,
    client,
    monotonicMs: () => nowMs,
    onChange: (endpoints) => reported.push(endpoints),
  });
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
  const duplicates = createDuplicateIdentities(() => nowMs);
  const holder = (lastSeenMs: number) => ({
    ...entryOf({ endpoint: "a", origin: "handshake", identity: "0x1" }),
    lastSeenMs,
  });
  t.is(duplicates.endpointOf(undefined), undefined);
  t.is(duplicates.endpointOf(holder(2_000)), undefined);
  duplicates.record("0x1", "https://b.test:1");
  t.is(duplicates.endpointOf(holder(900)), undefined);
  t.is(duplicates.endpointOf(holder(1_001)), "https://b.test:1");
  // A second handshake before the next poll of the holder does not end the alarm.
  nowMs = 60_000;
  duplicates.record("0x1", "https://b.test:1");
  t.is(duplicates.endpointOf(holder(59_999)), "https://b.test:1");
  t.is(
    duplicates.endpointOf({ ...holder(59_999), endpoint: "https://b.test:1" }),
    undefined,
    "The holder has moved there.",
  );
  t.is(
    duplicates.endpointOf({ ...holder(59_999), announced: "https://b.test:1" }),
    undefined,
    "The holder announces that address.",
  );
  nowMs = 200_000;
  t.is(duplicates.endpointOf(holder(199_999)), undefined);
  duplicates.record("0x1", "https://b.test:1");
  t.is(duplicates.endpointOf(holder(199_999)), undefined, "The earlier record has expired.");
});
