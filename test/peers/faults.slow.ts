/** Nodes with slow, broken and silent connections, and a frozen one: in the end all have the same chain. */
import test from "ava";
import { setTimeout as sleep } from "node:timers/promises";
import { ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { testKey } from "../helpers/chain/keys.js";
import { type FaultyProxy, startProxy } from "../helpers/wire/faulty-wire.js";
import { clientOf, statusOf, submit } from "../helpers/chain/submit.js";
import {
  endpointOf,
  headOf,
  healthOf,
  networkOf,
  peersOf,
  startMemberOf,
  startProcessOf,
  untilReady,
} from "../helpers/nodes/network.js";
import { askJson } from "../helpers/wire/plain-client.js";
import type { TestNode } from "../helpers/nodes/start-node.js";
import { eventually, until } from "../helpers/nodes/until.js";

const authority = testKey(1);
const { genesis } = networkOf(authority);
const count = 4;

test.serial(
  "after latency, broken connections and a partition, all heads are equal and no transaction is lost",
  async (t) => {
    t.timeout(240_000);
    const nodes: TestNode[] = [];
    const proxies: FaultyProxy[][] = [];
    for (let from = 0; from < count; from++) {
      proxies.push([]);
      for (let to = 0; to < count; to++) {
        proxies[from]!.push(await startProxy(t, () => nodes[to]?.ports["omni"] ?? 9));
      }
    }
    for (let i = 0; i < count; i++) {
      // Each node knows the others by its own proxies. The address that it announces does not exist.
      const seeds = proxies[i]!.filter((_, to) => to !== i).map(({ port }) => `https://127.0.0.1:${port}`);
      const flags = { "omni-url": `https://127.0.0.1:${i + 1}`, "loop-interval": "0.3" };
      nodes.push(await startMemberOf(t, { key: testKey(i + 1), genesis, seeds, flags }));
    }
    const allProxies = proxies.flat();
    for (const node of nodes) {
      await untilReady(node, count - 1);
    }

    const clients = nodes.map((node) => clientOf(t, node));
    let submitted = 0;
    async function submitAt(index: number): Promise<void> {
      submitted++;
      // Each transaction has its own sender, because different routes deliver in any order.
      const transaction = signTransaction(testKey(100 + submitted), 1, createPublic(`wire ${submitted}`, "{}"));
      await eventually("the transaction is accepted", async () => {
        await clients[index]!.call(ChainService.method.submitTransaction, { transaction });
        return true;
      });
    }
    const included = async (node: TestNode): Promise<number> =>
      (await askJson<{ count: number }>(node.port, "/storage-program/search?q=wire&limit=200")).count;
    const areEqual = async (): Promise<boolean> => {
      const heads = await Promise.all(nodes.map(headOf));
      return heads.every(({ hash }) => hash === heads[0]!.hash);
    };
    const haveAll = async (): Promise<boolean> =>
      (await areEqual()) && (await Promise.all(nodes.map(included))).every((found) => found === submitted);

    // Slow connections, which break.
    allProxies.forEach((proxy) => (proxy.delayMs = 40));
    const breaking = setInterval(() => allProxies[Math.floor(Math.random() * allProxies.length)]!.cut(), 100);
    for (let i = 0; i < 20; i++) {
      await submitAt(i % count);
      await sleep(50);
    }
    await sleep(2_000);
    clearInterval(breaking);
    await eventually("all nodes are equal after slow and broken connections", haveAll);
    t.is(await included(nodes[3]!), 20);

    // A partition into two halves.
    const across = proxies.flatMap((row, from) => row.filter((_, to) => from < 2 !== to < 2));
    across.forEach((proxy) => (proxy.isSilent = true));
    await eventually("the halves lose sight of each other", async () => {
      const online = await Promise.all(
        nodes.map(async (node) => (await peersOf(node)).filter(({ status }) => status.online).length),
      );
      return online.every((seen) => seen === 1);
    });
    const before = await headOf(nodes[2]!);
    for (let i = 0; i < 8; i++) {
      await submitAt(i % count);
    }
    await eventually("the half with the authority goes on", async () => (await included(nodes[1]!)) === 24);
    t.is((await headOf(nodes[2]!)).hash, before.hash);
    across.forEach((proxy) => {
      proxy.isSilent = false;
      proxy.cut();
    });
    await eventually("the partition heals", haveAll);
    t.is(await included(nodes[3]!), 28);
    for (const node of nodes) {
      await eventually("all are accepting", async () => (await healthOf(node)).accepting);
    }
  },
);

test.serial("transactions of one sender are included in order after the authority was frozen", async (t) => {
  t.timeout(240_000);
  const producer = await startProcessOf(t, { key: authority, genesis });
  const nodes: TestNode[] = [];
  for (const key of [2, 3, 4].map(testKey)) {
    nodes.push(await startMemberOf(t, { key, genesis, seeds: [producer, ...nodes].map(endpointOf) }));
  }
  for (const node of nodes) {
    await untilReady(node, nodes.length);
  }
  const client = clientOf(t, nodes[0]!);
  const hashes: string[] = [];
  const submitFor = async (ms: number): Promise<void> => {
    const untilMs = performance.now() + ms;
    while (performance.now() < untilMs) {
      hashes.push(await submit(client, hashes.length + 1));
    }
  };
  // A relay call times out after 2 s. Its transactions then go through other nodes, as do the following ones.
  for (let i = 0; i < 2; i++) {
    producer.child.kill("SIGSTOP");
    await submitFor(3_000).finally(() => producer.child.kill("SIGCONT"));
    await submitFor(1_500);
  }
  const rejected: string[] = [];
  for (const hash of hashes) {
    await until(async () => (await statusOf(client, hash)).status !== TransactionStatus.PENDING);
    const { status, reason = "" } = await statusOf(client, hash);
    if (status !== TransactionStatus.INCLUDED) {
      rejected.push(reason);
    }
  }
  t.deepEqual(rejected, [], `of ${hashes.length}`);
  t.log(`${hashes.length} transactions`);
});
