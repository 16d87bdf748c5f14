/** Transactions that are submitted anywhere and reach the authority. */
import { create } from "@bufbuild/protobuf";
import test from "ava";
import { setImmediate as allDone } from "node:timers/promises";
import { TransactionSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { PeerService } from "../../gen/gatehouse/peer/v1/peer_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import type { BookEntry } from "../../src/peers/address-book/peer.js";
import { createRelay, deferredMs, type RelayMempool } from "../../src/peers/relay/relay.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { testKey } from "../helpers/chain/keys.js";
import { connectStranger, startOddPeer, type Stranger } from "../helpers/nodes/odd-peer.js";
import { endpointOf, headOf, networkOf, peersOf, startMemberOf } from "../helpers/nodes/network.js";
import { askJson } from "../helpers/wire/plain-client.js";
import { readFailure } from "../helpers/wire/rpc-clients.js";
import type { TestNode } from "../helpers/nodes/start-node.js";
import { alice, clientOf, statusOf, submit } from "../helpers/chain/relaying.js";
import { until } from "../helpers/nodes/until.js";

const authority = testKey(1);
const { genesis, genesisHash } = networkOf(authority);

const isReady = async (node: TestNode): Promise<boolean> => (await peersOf(node)).some(({ status }) => status.ready);

async function subsystem(
  node: TestNode,
  name: string,
): Promise<{ status: string; lastError: { message: string } | null }> {
  const { subsystems } = await askJson<{
    subsystems: Record<string, { status: string; lastError: { message: string } | null }>;
  }>(node.port, "/health");
  return subsystems[name]!;
}

test("over a chain of nodes a transaction gets to the authority, once, and its block comes back", async (t) => {
  const maker = await startMemberOf(t, { key: authority, genesis });
  const middle = await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(maker)] });
  await until(() => isReady(middle));
  const far = await startMemberOf(t, { key: testKey(3), genesis, seeds: [endpointOf(middle)] });
  await until(() => isReady(far));
  const client = clientOf(t, far);
  const hashes: string[] = [];
  for (let nonce = 1; nonce <= 20; nonce++) {
    hashes.push(await submit(client, nonce));
  }
  for (const hash of hashes) {
    await until(async () => (await statusOf(client, hash)).status === TransactionStatus.INCLUDED);
  }
  for (const node of [maker, middle, far]) {
    await until(async () => (await askJson<{ mempool_size: number }>(node.port, "/health")).mempool_size === 0);
    t.is((await askJson<{ count: number }>(node.port, "/storage-program/search?q=p&limit=200")).count, 20);
  }
  t.is((await subsystem(far, "dtr")).status, "ready");
  t.is((await headOf(far)).hash, (await headOf(maker)).hash);
});

test("what the authority rejects is rejected where it was submitted, with the reason", async (t) => {
  const maker = await startMemberOf(t, { key: authority, genesis });
  const node = await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(maker)] });
  await until(() => isReady(node));
  const client = clientOf(t, node);
  // Of two with one nonce, submitted at two nodes before a block is made, the authority takes one.
  const [one, two] = ["a", "b"].map((name) => signTransaction(alice, 1, createPublic(name, "{}")));
  const first = await clientOf(t, maker).call(ChainService.method.submitTransaction, { transaction: one! });
  const second = await client.call(ChainService.method.submitTransaction, { transaction: two! });
  await until(async () => (await statusOf(client, second.hash)).status !== TransactionStatus.PENDING);
  await until(async () => (await statusOf(clientOf(t, maker), first.hash)).status !== TransactionStatus.PENDING);
  const fates = [await statusOf(clientOf(t, maker), first.hash), await statusOf(client, second.hash)];
  t.deepEqual(
    new Set(fates.map(({ status }) => status)),
    new Set([TransactionStatus.INCLUDED, TransactionStatus.REJECTED]),
  );
  t.is(fates.length, 2);
  t.regex(fates.find(({ status }) => status === TransactionStatus.REJECTED)!.reason ?? "", /nonce 1 is already used/);
});

test("a node that can relay nothing says so, and takes it again when it can", async (t) => {
  const maker = await startMemberOf(t, { key: authority, genesis });
  const node = await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(maker)] });
  await until(() => isReady(node));
  const client = clientOf(t, node);
  await maker.stop();
  await until(async () => (await subsystem(node, "dtr")).status === "failed");
  t.regex((await subsystem(node, "dtr")).lastError!.message, /No verified peer is online/);
  t.is((await askJson<{ status: string }>(node.port, "/health")).status, "degraded");
  const refused = readFailure(await t.throwsAsync(submit(client, 1)));
  t.like(refused, { reason: "RELAY_UNAVAILABLE", code: 14 });
  t.is((await askJson<{ mempool_size: number }>(node.port, "/health")).mempool_size, 0);
  await startMemberOf(t, {
    key: authority,
    genesis,
    dir: maker.dir,
    flags: { "omni-port": String(maker.ports["omni"]), "port-drift": "deny" },
  });
  await until(async () => (await subsystem(node, "dtr")).status === "ready");
  const hash = await submit(client, 1);
  await until(async () => (await statusOf(client, hash)).status === TransactionStatus.INCLUDED);
});

test("what was taken is relayed after a restart, when the authority is there again", async (t) => {
  const maker = await startMemberOf(t, { key: authority, genesis });
  const middle = await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(maker)] });
  const node = await startMemberOf(t, { key: testKey(3), genesis, seeds: [endpointOf(middle)] });
  await until(async () => (await peersOf(node)).filter(({ status }) => status.ready).length === 2);
  await until(async () => (await peersOf(middle)).filter(({ status }) => status.ready).length === 2);
  await maker.stop();
  await until(async () => (await peersOf(middle)).some(({ status }) => !status.online));
  await until(async () => (await peersOf(node)).some(({ status }) => !status.online));
  const hash = await submit(clientOf(t, node), 1);
  t.is((await statusOf(clientOf(t, node), hash)).status, TransactionStatus.PENDING);
  await node.stop();
  await middle.stop();
  const again = await startMemberOf(t, { key: authority, genesis, dir: maker.dir });
  const later = await startMemberOf(t, { key: testKey(3), genesis, dir: node.dir, seeds: [endpointOf(again)] });
  // It is relayed again a while after it was relayed to somebody who could do nothing with it.
  const client = clientOf(t, later);
  await until(async () => (await statusOf(client, hash)).status === TransactionStatus.INCLUDED);
});

test("whichever of a sender's transactions come first over the internal port, they get into blocks in their order", async (t) => {
  const maker = await startMemberOf(t, { key: authority, genesis });
  const [one, two] = [testKey(5), testKey(6)].map((key) => connectStranger(t, maker.ports["omni"]!, key));
  const transactions = [1, 2, 3].map((nonce) => signTransaction(alice, nonce, createPublic(`p${nonce}`, "{}")));
  const relay = async (by: Stranger, nonces: readonly number[]) =>
    await by.call(PeerService.method.relayTransactions, {
      transactions: nonces.map((nonce) => transactions[nonce - 1]!),
      orders: nonces.map((nonce) => (nonce === 1 ? {} : { afterNonce: BigInt(nonce - 1) })),
    });
  const client = clientOf(t, maker);
  await relay(one!, [3]);
  await relay(two!, [2]);
  // Of somebody else, who waits for none of it.
  const other = signTransaction(testKey(91), 1, createPublic("other", "{}"));
  const { hash } = await client.call(ChainService.method.submitTransaction, { transaction: other });
  await until(async () => (await statusOf(client, hash)).status === TransactionStatus.INCLUDED);
  await relay(two!, [1]);
  for (const { body } of transactions) {
    await until(async () => (await statusOf(client, sha256(body))).status !== TransactionStatus.PENDING);
    const { status, reason } = await statusOf(client, sha256(body));
    t.is(status, TransactionStatus.INCLUDED, reason);
  }
});

test("whom transactions are relayed to is told which comes after which", async (t) => {
  const told = new Map<string, bigint | undefined>();
  const odd = await startOddPeer(t, {
    key: authority,
    genesisHash,
    status: () => ({ accepting: true }),
    relayed: ({ transactions, orders }) =>
      transactions.map(({ body }, i) => {
        told.set(sha256(body), orders[i]?.afterNonce);
        return TransactionStatus.PENDING;
      }),
  });
  const node = await startMemberOf(t, { key: testKey(2), genesis, seeds: [odd.endpoint] });
  await until(() => isReady(node));
  const client = clientOf(t, node);
  const hashes: string[] = [];
  for (const nonce of [1, 2, 5]) {
    hashes.push(await submit(client, nonce));
  }
  await until(() => hashes.every((hash) => told.has(hash)));
  t.deepEqual(
    hashes.map((hash) => told.get(hash)),
    [undefined, 1n, 2n],
  );
});

/** A mempool in memory, for the clock to be ours. Nothing in it waits for anything but promises: {@link allDone}. */
function mempoolOf(hashes: readonly string[], nowMs: () => number = Date.now) {
  const relayed = new Map<string, number>();
  const deferred = new Map<string, number>();
  const rejected = new Map<string, string>();
  const mempool: RelayMempool = {
    toRelay: (_, beforeMs, { count }) =>
      Promise.resolve(
        hashes
          .filter((hash) => !rejected.has(hash))
          .filter((hash) => (relayed.get(hash) ?? 0) < beforeMs && (deferred.get(hash) ?? 0) <= nowMs())
          .slice(0, count)
          .map((hash) => ({ hash, transaction: create(TransactionSchema), afterNonce: undefined })),
      ),
    markRelayed: (_, taken, atMs) => taken.forEach((hash) => relayed.set(hash, atMs)),
    defer: (_, refused) => refused.forEach((hash) => deferred.set(hash, nowMs() + deferredMs)),
    reject: (reasons) => {
      reasons.forEach((reason, hash) => rejected.set(hash, reason));
      return Promise.resolve();
    },
  };
  return { mempool, rejected };
}

const believed = (...identities: string[]): (() => BookEntry[]) => {
  const entries = identities.map((identity) => ({ endpoint: identity, identity }) as unknown as BookEntry);
  return () => entries;
};

test("it is relayed once, and again when nothing came of it", async (t) => {
  let nowMs = 1_000_000;
  const sent: string[][] = [];
  const { mempool } = mempoolOf(["a", "b"]);
  const relay = createRelay({
    mempool,
    book: { healthy: believed("other", "authority") },
    authorities: ["authority"],
    mayFollow: () => true,
    send: (endpoint, transactions) => {
      sent.push([endpoint, ...transactions.map(({ hash }) => hash)]);
      return Promise.resolve(transactions.map(() => ({ status: TransactionStatus.PENDING, reason: "" }) as never));
    },
    monotonicMs: () => nowMs,
    onError: (error) => t.fail(String(error)),
  });
  t.teardown(() => relay.stop());
  const kick = async (): Promise<void> => {
    relay.kick();
    await allDone();
  };
  await kick();
  await kick();
  t.deepEqual(sent, [["authority", "a", "b"]]);
  nowMs += 6_000;
  await kick();
  t.is(sent.length, 2);
});

test("one that is refused for the moment keeps nobody waiting, and is relayed again", async (t) => {
  let nowMs = 1_000_000;
  const sent: string[][] = [];
  const { mempool, rejected } = mempoolOf(
    Array.from({ length: 150 }, (_, i) => `${i}`),
    () => nowMs,
  );
  let isBusy = true;
  const relay = createRelay({
    mempool,
    book: { healthy: believed("other", "authority") },
    authorities: ["authority"],
    mayFollow: () => true,
    send: (endpoint, transactions) => {
      t.is(endpoint, "authority", "who refuses for the moment is still whom it goes to");
      sent.push(transactions.map(({ hash }) => hash));
      const outcomes = transactions.map(({ hash }) => ({
        status: isBusy && hash === "7" ? TransactionStatus.UNSPECIFIED : TransactionStatus.PENDING,
        reason: "",
      }));
      return Promise.resolve(outcomes as never);
    },
    monotonicMs: () => nowMs,
    onError: (error) => t.fail(String(error)),
  });
  t.teardown(() => relay.stop());
  relay.kick();
  await allDone();
  t.deepEqual(
    sent.map((hashes) => hashes.length),
    [100, 50],
  );
  isBusy = false;
  nowMs += deferredMs;
  relay.kick();
  await allDone();
  t.deepEqual(sent.slice(2), [["7"]]);
  t.is(rejected.size, 0);
});

test("what is refused for the moment is tried again by itself", async (t) => {
  let sent = 0;
  const { mempool } = mempoolOf(["a"]);
  const relay = createRelay({
    mempool,
    book: { healthy: believed("authority") },
    authorities: ["authority"],
    mayFollow: () => true,
    send: () => {
      sent++;
      const status = sent === 1 ? TransactionStatus.UNSPECIFIED : TransactionStatus.PENDING;
      return Promise.resolve([{ status, reason: "" } as never]);
    },
    monotonicMs: Date.now,
    onError: (error) => t.fail(String(error)),
  });
  t.teardown(() => relay.stop());
  relay.kick();
  await until(() => sent === 2);
  t.pass();
});

test("only an authority's word that it is rejected is the last one", async (t) => {
  const answers = { status: TransactionStatus.REJECTED, reason: "no" } as never;
  for (const [peer, isFinal] of [
    ["other", false],
    ["authority", true],
  ] as const) {
    const { mempool, rejected } = mempoolOf(["a"]);
    const relay = createRelay({
      mempool,
      book: { healthy: believed(peer) },
      authorities: ["authority"],
      mayFollow: () => true,
      send: () => Promise.resolve([answers]),
      monotonicMs: Date.now,
      onError: (error) => t.fail(String(error)),
    });
    t.teardown(() => relay.stop());
    relay.kick();
    await allDone();
    t.is(rejected.has("a"), isFinal, peer);
  }
});
