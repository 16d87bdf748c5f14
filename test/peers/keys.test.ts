/** Keys of nodes: one in two processes, which find each other out; and one that was lost, as docs/operations.md has it. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test from "ava";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import type { PeerClient } from "../../src/peers/handshake/client.js";
import { createDuplicateIdentities } from "../../src/peers/handshake/duplicate-identities.js";
import { createKeyMonitor } from "../../src/peers/handshake/key-monitor.js";
import { unknownPeer, entryOf } from "../../src/peers/address-book/peer.js";
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

async function failureOf({ port }: { readonly port: number }): Promise<string> {
  const { chain } = (await askJson<Health>(port, "/health")).subsystems;
  return chain.status === "failed" ? chain.lastError!.message : "";
}

const clientOf = ({ rpcUrl }: TestNode) => createClient(ChainService, createGrpcTransport({ baseUrl: rpcUrl }));

/** Submits a transaction; gives what tells how it is. */
async function submit(node: TestNode, nonce: number): Promise<() => Promise<TransactionStatus>> {
  const transaction = signTransaction(testKey(90), nonce, createPublic(`p${nonce}`, "{}"));
  await clientOf(node).submitTransaction({ transaction });
  const hash = sha256(transaction.body);
  return async () => (await clientOf(node).getTransaction({ hash })).status;
}

/** Starts a node again where it was, with the key that is there now. */
async function startAgain(t: Teardown, { dir, ports }: TestNode, recover: boolean): Promise<TestNode> {
  const files = { genesis: join(dir, "genesis.json"), peers: join(dir, "peers.json") };
  const own = { "rpc-port": String(ports.rpc), "omni-port": String(ports["omni"]), recover };
  return await startTestNode(t, { ...files, ...own, "loop-interval": "0.2", "allow-private-peers": true }, dir);
}

test("a copy of a node that knows the same peer, and nobody else, is found out by all three", async (t) => {
  t.timeout(180_000);
  const first = await startMemberOf(t, { key: authority, genesis });
  const follower = await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(first)] });
  await until(async () => (await peersOf(first))[0]?.verification.status === true);
  t.is(await failureOf(first), "");
  const copy = await startMemberOf(t, { key: authority, genesis, seeds: [endpointOf(follower)] });
  await eventually("the follower says so", async () =>
    new RegExp(`^Two processes use the key ${authority.publicKey} of an authority`).test(await failureOf(follower)),
  );
  for (const node of [first, copy]) {
    await eventually("they find each other out", async () =>
      new RegExp(`^Another process uses this node's key ${authority.publicKey}, at https`).test(await failureOf(node)),
    );
  }
  t.is((await askJson<Health>(first.port, "/health")).status, "failing");
  // It is the operator who decides which one is to go: whoever made blocks goes on.
  await submit(first, 1);
  await until(async () => (await headOf(follower)).number === 1);
  t.is((await headOf(first)).hash, (await headOf(follower)).hash);
});

test("without its authority's key a network is read, and makes no block until it is restored", async (t) => {
  t.timeout(180_000);
  const maker = await startMemberOf(t, { key: authority, genesis });
  const follow = (number: number, seed: TestNode) =>
    startMemberOf(t, { key: testKey(number), genesis, seeds: [endpointOf(seed)], flags: { recover: false } });
  const follower = await follow(2, maker);
  await writeFile(join(maker.dir, "peers.json"), JSON.stringify([{ url: endpointOf(follower) }]));
  const another = await follow(3, follower);
  await submit(maker, 1);
  await until(async () => (await headOf(another)).number === 1);
  await maker.stop();
  const lost = join(maker.dir, "identity.key");
  await rm(lost);

  await until(async () => (await peersOf(follower)).some(({ status }) => !status.online));
  // Nobody tells the others; they take what waits until it expires.
  await until(async () => (await askJson<Health>(follower.port, "/health")).accepting);
  t.is((await askJson<Health>(follower.port, "/health")).status, "ok");
  const status = await submit(follower, 2);
  const said = new RegExp(`belongs to the node ${authority.publicKey}, whose key is not at .* Restore the key`);
  await t.throwsAsync(startAgain(t, maker, false), { message: said });
  const somebody = await startAgain(t, maker, true);
  t.not(somebody.publicKey, authority.publicKey);
  await until(async () => (await peersOf(somebody)).some(({ status: { ready } }) => ready));
  t.is((await headOf(somebody)).number, 1);
  t.is(await status(), TransactionStatus.PENDING);
  await somebody.stop();

  await rm(lost);
  await writeKey(lost, authority);
  // The database is the other one's now.
  const others = new RegExp(`belongs to the node ${somebody.publicKey}; this key is ${authority.publicKey}`);
  await t.throwsAsync(startAgain(t, maker, false), { message: others });
  await startAgain(t, maker, true);
  await until(async () => (await status()) === TransactionStatus.INCLUDED);
});

test("a node that has lost its key goes on with a new one, and those who named the old one have to be told", async (t) => {
  const node = await startMemberOf(t, { key: testKey(2), genesis, flags: { recover: false } });
  const named = { url: endpointOf(node), identity: node.publicKey };
  const member = { key: authority, genesis };
  const maker = await startMemberOf(t, { ...member, seeds: [named] });
  await submit(maker, 1);
  await until(async () => (await headOf(node)).number === 1);
  await node.stop();
  await rm(join(node.dir, "identity.key"));
  await writeFile(join(node.dir, "peers.json"), JSON.stringify([{ url: endpointOf(maker) }]));
  await t.throwsAsync(startAgain(t, node, false), { message: /whose key is not at/ });
  const again = await startAgain(t, node, true);
  t.not(again.publicKey, node.publicKey);
  const refusal = new RegExp(`proved the identity ${again.publicKey}, which is not the expected one`);
  await until(async () => (await peersOf(maker)).some(({ verification: { message } }) => refusal.test(message ?? "")));
  await again.stop();

  // A file that has the old key no more leaves nothing of it.
  await maker.stop();
  await writeFile(join(maker.dir, "peers.json"), "[]");
  const told = await startAgain(t, maker, false);
  const third = await startAgain(t, node, false);
  t.is(third.publicKey, again.publicKey, "The word was needed once.");
  await until(async () =>
    (await peersOf(told)).some(({ identity, verification }) => identity === third.publicKey && verification.status),
  );
});

test("a node that is started again, or has moved, is no second one", async (t) => {
  const first = await startMemberOf(t, { key: authority, genesis });
  const follower = await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(first)] });
  await until(async () => (await peersOf(follower))[0]?.status.online === true);
  await first.stop();
  const moved = await startMemberOf(t, { key: authority, genesis, seeds: [endpointOf(follower)], dir: first.dir });
  await until(async () => (await peersOf(moved))[0]?.status.ready === true);
  t.is(await failureOf(moved), "");
  t.is(await failureOf(follower), "");
});

test("who was met is asked again, and forgotten when it was not there for a minute", async (t) => {
  let nowMs = 0;
  let answer: { readonly identity: string; readonly instanceId: Buffer } | undefined;
  const client = {
    call: () => (answer === undefined ? Promise.reject(new Error("away")) : Promise.resolve(answer)),
    identityOf: () => answer?.identity,
    drop: () => undefined,
  } as unknown as PeerClient;
  const shown: (readonly string[])[] = [];
  const self = { key: authority, instanceId: Buffer.alloc(16, 1) };
  const keys = createKeyMonitor({ self, client, monotonicMs: () => nowMs, onChange: (all) => shown.push(all) });
  await keys.poll();
  t.deepEqual(shown, []);
  keys.report("https://a.test:1");
  keys.report("https://a.test:1");
  t.deepEqual(shown, [["https://a.test:1"]]);
  answer = { identity: authority.publicKey, instanceId: Buffer.alloc(16, 2) };
  nowMs = 50_000;
  await keys.poll();
  for (const other of [
    undefined,
    { identity: testKey(2).publicKey, instanceId: Buffer.alloc(16, 2) },
    { identity: authority.publicKey, instanceId: Buffer.alloc(16, 1) },
  ]) {
    answer = other;
    nowMs = 110_000;
    await keys.poll();
    t.is(shown.length, 1);
  }
  nowMs = 110_001;
  await keys.poll();
  t.deepEqual(shown, [["https://a.test:1"], []]);
});

test("an identity has two processes when its holder answers after another one was seen", (t) => {
  let nowMs = 1_000;
  const duplicates = createDuplicateIdentities(() => nowMs);
  const holder = (lastSeenMs: number) => ({
    ...entryOf({ ...unknownPeer, endpoint: "a", identity: "0x1" }),
    lastSeenMs,
  });
  t.is(duplicates.endpointOf(undefined), undefined);
  t.is(duplicates.endpointOf(holder(2_000)), undefined);
  duplicates.record("0x1", "https://b.test:1");
  t.is(duplicates.endpointOf(holder(900)), undefined);
  t.is(duplicates.endpointOf(holder(1_001)), "https://b.test:1");
  // It comes again, refused, before the holder has been asked again: that ends no alarm.
  nowMs = 60_000;
  duplicates.record("0x1", "https://b.test:1");
  t.is(duplicates.endpointOf(holder(59_999)), "https://b.test:1");
  t.is(duplicates.endpointOf({ ...holder(59_999), endpoint: "https://b.test:1" }), undefined, "It has moved there.");
  t.is(
    duplicates.endpointOf({ ...holder(59_999), announced: "https://b.test:1" }),
    undefined,
    "So it has, and says so.",
  );
  nowMs = 200_000;
  t.is(duplicates.endpointOf(holder(199_999)), undefined);
  duplicates.record("0x1", "https://b.test:1");
  t.is(duplicates.endpointOf(holder(199_999)), undefined, "It is another time.");
});
