/** Transactions that are submitted to any node and relayed to the authority. */
import { create } from "@bufbuild/protobuf";
import test from "ava";
import { setImmediate as allDone } from "node:timers/promises";
import { TransactionSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { PeerService, RelayOutcomeSchema } from "../../gen/gatehouse/peer/v1/peer_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import type { BookEntry } from "../../src/peers/address-book/peer.js";
import { createRelay, deferredMs, type RelayMempool } from "../../src/peers/relay/relay.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { testKey } from "../helpers/chain/keys.js";
import { connectStranger, startOddPeer } from "../helpers/nodes/odd-peer.js";
import {
  endpointOf,
  headOf,
  healthOf,
  networkOf,
  peersOf,
  startMemberOf,
  untilAt,
  untilReady,
} from "../helpers/nodes/network.js";
import { askJson } from "../helpers/wire/plain-client.js";
import { readFailure } from "../helpers/wire/rpc-clients.js";
import { alice, clientOf, statusOf, submit } from "../helpers/chain/submit.js";
import type { TestNode } from "../helpers/nodes/start-node.js";
import type { TestGrpcClient } from "../helpers/wire/grpc-client.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { likeLists } from "../helpers/like-lists.js";

const authority = testKey(1);
const { genesis, genesisHash } = networkOf(authority);
const { PENDING, INCLUDED, REJECTED, UNSPECIFIED } = TransactionStatus;

/** Starts an authority and a node that relays to it. */
async function startPair(t: Teardown) {
  const producer = await startMemberOf(t, { key: authority, genesis });
  const node = await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(producer)] });
  await untilReady(node);
  return { producer, node };
}

const relayOf = async (node: TestNode) => (await healthOf(node)).subsystems["dtr"]!;

/** Waits until transactions are no longer pending, and returns their statuses and reasons. */
async function decided(client: TestGrpcClient, ...hashes: readonly string[]) {
  for (const hash of hashes) {
    await until(async () => (await statusOf(client, hash)).status !== PENDING);
  }
  return await Promise.all(hashes.map((hash) => statusOf(client, hash)));
}

test("relays a transaction over several nodes to the authority once, and its block comes back", async (t) => {
  const { producer, node: middle } = await startPair(t);
  const far = await startMemberOf(t, { key: testKey(3), genesis, seeds: [endpointOf(middle)] });
  await untilReady(far);
  const client = clientOf(t, far);
  const hashes: string[] = [];
  for (let nonce = 1; nonce <= 20; nonce++) {
    hashes.push(await submit(client, nonce));
  }
  t.true((await decided(client, ...hashes)).every(({ status }) => status === INCLUDED));
  const { number } = await headOf(far);
  for (const node of [producer, middle, far]) {
    // The last blocks may reach the far node before the middle one.
    await untilAt(node, number);
    await until(async () => (await healthOf(node)).mempool_size === 0);
    t.is((await askJson<{ count: number }>(node.port, "/storage-program/search?q=p&limit=200")).count, 20);
  }
  t.is((await relayOf(far)).status, "ready");
  t.is((await headOf(far)).hash, (await headOf(producer)).hash);
});

test("a transaction that the authority rejects is rejected on the first node, with the reason", async (t) => {
  const { producer, node } = await startPair(t);
  const clients = [clientOf(t, producer), clientOf(t, node)];
  // Two nodes get a transaction each with one nonce before the next block. The authority includes one of them.
  const hashes: string[] = [];
  for (const [i, client] of clients.entries()) {
    const transaction = signTransaction(alice, 1, createPublic(`p${i}`, "{}"));
    hashes.push((await client.call(ChainService.method.submitTransaction, { transaction })).hash);
  }
  const statuses = await Promise.all(clients.map(async (client, i) => (await decided(client, hashes[i]!))[0]!));
  t.deepEqual(new Set(statuses.map(({ status }) => status)), new Set([INCLUDED, REJECTED]));
  t.regex(statuses.find(({ status }) => status === REJECTED)!.reason ?? "", /nonce 1 is already used/);
});

test("rejects transactions with RELAY_UNAVAILABLE while no verified peer is online", async (t) => {
  const { producer, node } = await startPair(t);
  const client = clientOf(t, node);
  await producer.stop();
  await until(async () => (await relayOf(node)).status === "failed");
  t.regex((await relayOf(node)).lastError!.message, /No verified peer is online/);
  t.is((await healthOf(node)).status, "degraded");
  const rejected = readFailure(await t.throwsAsync(submit(client, 1)));
  t.like(rejected, { reason: "RELAY_UNAVAILABLE", code: 14 });
  t.is((await healthOf(node)).mempool_size, 0);
  const flags = { "omni-port": String(producer.ports["omni"]), "port-drift": "deny" };
  await startMemberOf(t, { key: authority, genesis, dir: producer.dir, flags });
  await until(async () => (await relayOf(node)).status === "ready");
  likeLists(t, await decided(client, await submit(client, 1)), [{ status: INCLUDED }]);
});

test("relays a stored transaction after a restart, once the authority is back", async (t) => {
  const { producer, node: middle } = await startPair(t);
  const node = await startMemberOf(t, { key: testKey(3), genesis, seeds: [endpointOf(middle)] });
  await untilReady(node, 2);
  await untilReady(middle, 2);
  await producer.stop();
  for (const one of [middle, node]) {
    await until(async () => (await peersOf(one)).some(({ status }) => !status.online));
  }
  const hash = await submit(clientOf(t, node), 1);
  t.is((await statusOf(clientOf(t, node), hash)).status, PENDING);
  await node.stop();
  await middle.stop();
  const again = await startMemberOf(t, { key: authority, genesis, dir: producer.dir });
  const later = await startMemberOf(t, { key: testKey(3), genesis, dir: node.dir, seeds: [endpointOf(again)] });
  // The first relay went to a peer without a route to the authority. The node relays again some seconds later.
  likeLists(t, await decided(clientOf(t, later), hash), [{ status: INCLUDED }]);
});

test("relayed transactions of a sender are included in nonce order, whatever order they arrive in", async (t) => {
  const producer = await startMemberOf(t, { key: authority, genesis });
  const [one, two] = [testKey(5), testKey(6)].map((key) => connectStranger(t, producer.ports["omni"]!, key));
  const transactions = [1, 2, 3].map((nonce) => signTransaction(alice, nonce, createPublic(`p${nonce}`, "{}")));
  const relay = async (peer: typeof one, nonce: number) =>
    await peer!.call(PeerService.method.relayTransactions, {
      transactions: [transactions[nonce - 1]!],
      orders: [nonce === 1 ? {} : { afterNonce: BigInt(nonce - 1) }],
    });
  const client = clientOf(t, producer);
  await relay(one, 3);
  await relay(two, 2);
  // A transaction of another sender does not wait for them.
  const other = signTransaction(testKey(91), 1, createPublic("other", "{}"));
  const { hash } = await client.call(ChainService.method.submitTransaction, { transaction: other });
  likeLists(t, await decided(client, hash), [{ status: INCLUDED }]);
  await relay(two, 1);
  for (const { status, reason } of await decided(client, ...transactions.map(({ body }) => sha256(body)))) {
    t.is(status, INCLUDED, reason);
  }
});

test("relays each transaction with the previous nonce of its sender", async (t) => {
  const afterNonces = new Map<string, bigint | undefined>();
  const odd = await startOddPeer(t, {
    ...{ key: authority, genesisHash, status: () => ({ accepting: true }) },
    relayed: ({ transactions, orders }) =>
      transactions.map(({ body }, i) => {
        afterNonces.set(sha256(body), orders[i]?.afterNonce);
        return PENDING;
      }),
  });
  const node = await startMemberOf(t, { key: testKey(2), genesis, seeds: [odd.endpoint] });
  await untilReady(node);
  const hashes: string[] = [];
  for (const nonce of [1, 2, 5]) {
    hashes.push(await submit(clientOf(t, node), nonce));
  }
  await until(() => hashes.every((hash) => afterNonces.has(hash)));
  const sent = hashes.map((hash) => afterNonces.get(hash));
  t.deepEqual(sent, [undefined, 1n, 2n]);
});

/**
 * Creates a relay with a mempool in memory and a clock of the test. It uses no timers, so {@link allDone} waits for all
 * of its work.
 *
 * @param statusOfSent returns the outcome for a transaction that is sent.
 */
function setUp(
  t: Teardown & { fail(message: string): never },
  hashes: readonly string[],
  statusOfSent: (hash: string) => TransactionStatus,
  identities: readonly string[] = ["other", "authority"],
) {
  const clock = { nowMs: 1_000_000 };
  const sent: string[][] = [];
  const [relayed, deferred] = [new Map<string, number>(), new Map<string, number>()];
  const rejected = new Map<string, string>();
  const isWaiting = (hash: string, beforeMs: number): boolean =>
    !rejected.has(hash) && (relayed.get(hash) ?? 0) < beforeMs && (deferred.get(hash) ?? 0) <= clock.nowMs;
  const mempool: RelayMempool = {
    async toRelay(_, beforeMs, { count }) {
      const waiting = await Promise.resolve(hashes.filter((hash) => isWaiting(hash, beforeMs)));
      return waiting
        .slice(0, count)
        .map((hash) => ({ hash, transaction: create(TransactionSchema), afterNonce: undefined }));
    },
    markRelayed: (_, accepted, atMs) => accepted.forEach((hash) => relayed.set(hash, atMs)),
    defer: (_, postponed) => postponed.forEach((hash) => deferred.set(hash, clock.nowMs + deferredMs)),
    remove: (_, reasons) => Promise.resolve(reasons.forEach((reason, hash) => rejected.set(hash, reason))),
  };
  const peers = identities.map((identity) => ({ endpoint: identity, identity }) as unknown as BookEntry);
  const relay = createRelay({
    ...{ mempool, book: { healthy: () => peers }, authorities: ["authority"], mayFollow: () => true },
    async send(endpoint, batch) {
      sent.push([endpoint, ...batch.map(({ hash }) => hash)]);
      return await Promise.resolve(
        batch.map(({ hash }) => create(RelayOutcomeSchema, { status: statusOfSent(hash), reason: "no" })),
      );
    },
    monotonicMs: () => clock.nowMs,
    onError: (error) => t.fail(String(error)),
  });
  t.teardown(() => relay.stop());
  const kick = async (): Promise<void> => {
    relay.kick();
    await allDone();
  };
  return { clock, sent, rejected, kick };
}

test("relays a transaction once, and again if it is still pending 6 s later", async (t) => {
  const { clock, sent, kick } = setUp(t, ["a", "b"], () => PENDING);
  await kick();
  await kick();
  t.deepEqual(sent, [["authority", "a", "b"]]);
  clock.nowMs += 6_000;
  await kick();
  t.is(sent.length, 2);
});

test("a transaction that a peer postpones does not delay the others, and is relayed again to it", async (t) => {
  let isBusy = true;
  const hashes = Array.from({ length: 150 }, (_, i) => `${i}`);
  const { clock, sent, rejected, kick } = setUp(t, hashes, (hash) => (isBusy && hash === "7" ? UNSPECIFIED : PENDING));
  await kick();
  t.deepEqual(
    sent.map(({ length, 0: endpoint }) => [endpoint, length - 1]),
    [
      ["authority", 100],
      ["authority", 50],
    ],
  );
  isBusy = false;
  clock.nowMs += deferredMs;
  await kick();
  t.deepEqual(sent.slice(2), [["authority", "7"]]);
  t.is(rejected.size, 0);
});

test("relays a postponed transaction again without another kick", async (t) => {
  const { clock, sent, kick } = setUp(t, ["a"], () => (sent.length === 1 ? UNSPECIFIED : PENDING));
  await kick();
  clock.nowMs += deferredMs;
  await until(() => sent.length === 2);
  t.pass();
});

test("only a rejection by an authority is final", async (t) => {
  for (const peer of ["other", "authority"]) {
    const { rejected, kick } = setUp(t, ["a"], () => REJECTED, [peer]);
    await kick();
    t.is(rejected.has("a"), peer === "authority");
  }
});
