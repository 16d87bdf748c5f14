/** Nodes whose wires are slow, break, and fall silent: in the end all have the same chain. */
import test from "ava";
import { setTimeout as sleep } from "node:timers/promises";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { testKey } from "../helpers/chain/keys.js";
import { type FaultyProxy, startProxy } from "../helpers/wire/faulty-wire.js";
import { connectGrpc } from "../helpers/wire/grpc-client.js";
import { headOf, networkOf, peersOf, startMemberOf } from "../helpers/nodes/network.js";
import { askJson } from "../helpers/wire/plain-client.js";
import type { TestNode } from "../helpers/nodes/start-node.js";
import { eventually } from "../helpers/nodes/until.js";

const authority = testKey(1);
const { genesis } = networkOf(authority);
const count = 4;

test("latency, broken connections, a partition and its healing end in equal heads, and nothing is lost", async (t) => {
  t.timeout(240_000);
  const nodes: TestNode[] = [];
  const wires: FaultyProxy[][] = [];
  for (let from = 0; from < count; from++) {
    wires.push([]);
    for (let to = 0; to < count; to++) {
      wires[from]!.push(await startProxy(t, () => nodes[to]?.ports["omni"] ?? 9));
    }
  }
  for (let i = 0; i < count; i++) {
    // Each knows the others by its own wires to them, and the address that it names itself by leads nowhere.
    const seeds = wires[i]!.filter((_, to) => to !== i).map(({ port }) => `https://127.0.0.1:${port}`);
    const flags = { "omni-url": `https://127.0.0.1:${i + 1}`, "loop-interval": "0.3" };
    nodes.push(await startMemberOf(t, { key: testKey(i + 1), genesis, seeds, flags }));
  }
  const all = wires.flat();
  const readyPeers = async (node: TestNode): Promise<number> =>
    (await peersOf(node)).filter(({ status }) => status.ready).length;
  for (const node of nodes) {
    await eventually("all know each other", async () => (await readyPeers(node)) === count - 1);
  }

  const clients = nodes.map(({ port }) => connectGrpc(port));
  t.teardown(() => clients.forEach((client) => client.close()));
  let submitted = 0;
  async function submitAt(index: number): Promise<void> {
    submitted++;
    // A sender for each: what goes different ways arrives in any order.
    const transaction = signTransaction(testKey(100 + submitted), 1, createPublic(`wire ${submitted}`, "{}"));
    await eventually("it is taken", async () =>
      clients[index]!.call(ChainService.method.submitTransaction, { transaction }).then(
        () => true,
        () => false,
      ),
    );
  }
  const included = async (node: TestNode): Promise<number> =>
    (await askJson<{ count: number }>(node.port, "/storage-program/search?q=wire&limit=200")).count;
  const areEqual = async (): Promise<boolean> => {
    const heads = await Promise.all(nodes.map(headOf));
    return heads.every(({ hash }) => hash === heads[0]!.hash);
  };
  const settled = async (): Promise<boolean> =>
    (await areEqual()) && (await Promise.all(nodes.map(included))).every((found) => found === submitted);

  // Slow wires, which break.
  all.forEach((wire) => (wire.delayMs = 40));
  const breaking = setInterval(() => all[Math.floor(Math.random() * all.length)]!.cut(), 100);
  for (let i = 0; i < 20; i++) {
    await submitAt(i % count);
    await sleep(50);
  }
  await sleep(2_000);
  clearInterval(breaking);
  await eventually("slow and broken wires", settled);
  t.is(await included(nodes[3]!), 20);

  // Two halves, silent to each other.
  const across = wires.flatMap((row, from) => row.filter((_, to) => from < 2 !== to < 2));
  across.forEach((wire) => (wire.isSilent = true));
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
  across.forEach((wire) => {
    wire.isSilent = false;
    wire.cut();
  });
  await eventually("it heals", settled);
  t.is(await included(nodes[3]!), 28);
  for (const node of nodes) {
    await eventually(
      "all are accepting",
      async () => (await askJson<{ accepting: boolean }>(node.port, "/health")).accepting,
    );
  }
});
