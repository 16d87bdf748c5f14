/** Transactions that are submitted to any node and relayed to the authority. */
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
import { alice, clientOf, statusOf, submit } from "../helpers/chain/submit.js";
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

test("relays a transaction over several nodes to the authority once, and its block comes back", async (t) => {
  const producer = await startMemberOf(t, { key: authority, genesis });
  const middle = await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(producer)] });
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
  for (const node of [producer, middle, far]) {
    await until(async () => (await askJson<{ mempool_size: number }>(node.port, "/health")).mempool_size === 0);
    t.is((await askJson<{ count: number }>(node.port, "/storage-program/search?q=p&limit=200")).count, 20);
  }
  t.is((await subsystem(far, "dtr")).status, "ready");
  t.is((await headOf(far)).hash, (await headOf(producer)).hash);
});

test("a transaction that the authority rejects is rejected on the first node, with the reason", async (t) => {
  const producer = await startMemberOf(t, { key: authority, genesis });
  const node = await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(producer)] });
  await until(() => isReady(node));
  const client = clientOf(t, node);
  // Two nodes get a transaction each with one nonce before the next block. The authority includes one of them.
  const [one, two] = ["a", "b"].map((name) => signTransaction(alice, 1, createPublic(name, "{}")));
  const first = await clientOf(t, producer).call(ChainService.method.submitTransaction, { transaction: one! });
  const second = await client.call(ChainService.method.submitTransaction, { transaction: two! });
  await until(async () => (await statusOf(client, second.hash)).status !== TransactionStatus.PENDING);
  await until(async () => (await statusOf(clientOf(t, producer), first.hash)).status !== TransactionStatus.PENDING);
  const statuses = [await statusOf(clientOf(t, producer), first.hash), await statusOf(client, second.hash)];
  t.deepEqual(
    new Set(statuses.map(({ status }) => status)),
    new Set([TransactionStatus.INCLUDED, TransactionStatus.REJECTED]),
  );
  t.is(statuses.length, 2);
  t.regex(
    statuses.find(({ status }) => status === TransactionStatus.REJECTED)!.reason ?? "",
    /nonce 1 is already used/,
  );
});

test("rejects transactions with RELAY_UNAVAILABLE while no verified peer is online", async (t) => {
  const producer = await startMemberOf(t, { key: authority, genesis });
  const node = await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(producer)] });
  await until(() => isReady(node));
  const client = clientOf(t, node);
  await producer.stop();
  await until(async () => (await subsystem(node, "dtr")).status === "failed");
  t.regex((await subsystem(node, "dtr")).lastError!.message, /No verified peer is online/);
  t.is((await askJson<{ status: string }>(node.port, "/health")).status, "degraded");
  const rejected = readFailure(await t.throwsAsync(submit(client, 1)));
  t.like(rejected, { reason: "RELAY_UNAVAILABLE", code: 14 });
  t.is((await askJson<{ mempool_size: number }>(node.port, "/health")).mempool_size, 0);
  await startMemberOf(t, {
    key: authority,
    genesis,
    dir: producer.dir,
    flags: { "omni-port": String(producer.ports["omni"]), "port-drift": "deny" },
  });
  await until(async () => (await subsystem(node, "dtr")).status === "ready");
  const hash = await submit(client, 1);
  await until(async () => (await statusOf(client, hash)).status === TransactionStatus.INCLUDED);
});

test("relays a stored transaction after a restart, once the authority is back", async (t) => {
  const producer = await startMemberOf(t, { key: authority, genesis });
  const middle = await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(producer)] });
  const node = await startMemberOf(t, { key: testKey(3), genesis, seeds: [endpointOf(middle)] });
  await until(async () => (await peersOf(node)).filter(({ status }) => status.ready).length === 2);
  await until(async () => (await peersOf(middle)).filter(({ status }) => status.ready).length === 2);
  await producer.stop();
  await until(async () => (await peersOf(middle)).some(({ status }) => !status.online));
  await until(async () => (await peersOf(node)).some(({ status }) => !status.online));
  const hash = await submit(clientOf(t, node), 1);
  t.is((await statusOf(clientOf(t, node), hash)).status, TransactionStatus.PENDING);
  await node.stop();
  await middle.stop();
  const again = await startMemberOf(t, { key: authority, genesis, dir: producer.dir });
  const later = await startMemberOf(t, { key: testKey(3), genesis, dir: node.dir, seeds: [endpointOf(again)] });
  // The first relay went to a peer without a route to the authority. The node relays again some seconds later.
  const client = clientOf(t, later);
  await until(async () => (await statusOf(client, hash)).status === TransactionStatus.INCLUDED);
});

test("relayed transactions of a sender are included in nonce order, whatever order they arrive in", async (t) => {
  const producer = await startMemberOf(t, { key: authority, genesis });
  const [one, two] = [testKey(5), testKey(6)].map((key) => connectStranger(t, producer.ports["omni"]!, key));
  const transactions = [1, 2, 3].map((nonce) => signTransaction(alice, nonce, createPublic(`p${nonce}`, "{}")));
  const relay = async (peer: Stranger, nonces: readonly number[]) =>
    await peer.call(PeerService.method.relayTransactions, {
      transactions: nonces.map((nonce) => transactions[nonce - 1]!),
      orders: nonces.map((nonce) => (nonce === 1 ? {} : { afterNonce: BigInt(nonce - 1) })),
    });
  const client = clientOf(t, producer);
  await relay(one!, [3]);
  await relay(two!, [2]);
  // A transaction of another sender does not wait for them.
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

test("relays each transaction with the previous nonce of its sender", async (t) => {
  const afterNonces = new Map<string, bigint | undefined>();
  const odd = await startOddPeer(t, {
    key: authority,
    genesisHash,
    status: () => ({ accepting: true }),
    relayed: ({ transactions, orders }) =>
      transactions.map(({ body }, i) => {
        afterNonces.set(sha256(body), orders[i]?.afterNonce);
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
  await until(() => hashes.every((hash) => afterNonces.has(hash)));
  t.deepEqual(
    hashes.map((hash) => afterNonces.get(hash)),
    [undefined, 1n, 2n],
  );
});

/** A mempool in memory with a clock of the test. It uses no timers, so {@link allDone} waits for all of its work. */
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
    markRelayed: (_, accepted, atMs) => accepted.forEach((hash) => relayed.set(hash, atMs)),
    defer: (_, postponed) => postponed.forEach((hash) => deferred.set(hash, nowMs() + deferredMs)),
    remove: (_, reasons) => {
      reasons.forEach((reason, hash) => rejected.set(hash, reason));
      return Promise.resolve();
    },
  };
  return { mempool, rejected };
}

const healthyPeers = (...identities: string[]): (() => BookEntry[]) => {
  const entries = identities.map((identity) => ({ endpoint: identity, identity }) as unknown as BookEntry);
  return () => entries;
};

test("relays a transaction once, and again if it is still pending 6 s later", async (t) => {
  let nowMs = 1_000_000;
  const sent: string[][] = [];
  const { mempool } = mempoolOf(["a", "b"]);
  const relay = createRelay({
    mempool,
    book: { healthy: healthyPeers("other", "authority") },
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

test("a transaction that a peer postpones does not delay the others, and is relayed again", async (t) => {
  let nowMs = 1_000_000;
  const sent: string[][] = [];
  const { mempool, rejected } = mempoolOf(
    Array.from({ length: 150 }, (_, i) => `${i}`),
    () => nowMs,
  );
  let isBusy = true;
  const relay = createRelay({
    mempool,
    book: { healthy: healthyPeers("other", "authority") },
    authorities: ["authority"],
    mayFollow: () => true,
    send: (endpoint, transactions) => {
      t.is(endpoint, "authority", "the peer that postponed it still gets it");
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

test("relays a postponed transaction again without another kick", async (t) => {
  let sent = 0;
  const { mempool } = mempoolOf(["a"]);
  const relay = createRelay({
    mempool,
    book: { healthy: healthyPeers("authority") },
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

test("only a rejection by an authority is final", async (t) => {
  const outcome = { status: TransactionStatus.REJECTED, reason: "no" } as never;
  for (const [peer, isFinal] of [
    ["other", false],
    ["authority", true],
  ] as const) {
    const { mempool, rejected } = mempoolOf(["a"]);
    const relay = createRelay({
      mempool,
      book: { healthy: healthyPeers(peer) },
      authorities: ["authority"],
      mayFollow: () => true,
      send: () => Promise.resolve([outcome]),
      monotonicMs: Date.now,
      onError: (error) => t.fail(String(error)),
    });
    t.teardown(() => relay.stop());
    relay.kick();
    await allDone();
    t.is(rejected.has("a"), isFinal, peer);
  }
});
