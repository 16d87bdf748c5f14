/** Five node processes that know one address: they find each other, sync, and recover from kills. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test from "ava";
import { join } from "node:path";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { decodeBlock } from "../../src/chain/transactions/transaction.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { testKey } from "../helpers/chain/keys.js";
import { alice, clientOf } from "../helpers/chain/submit.js";
import {
  endpointOf,
  headOf,
  healthOf,
  networkOf,
  type NodeProcess,
  peersOf,
  seedBlocks,
  startProcessOf,
} from "../helpers/nodes/network.js";
import { askJson } from "../helpers/wire/plain-client.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { eventually } from "../helpers/nodes/until.js";

const authority = testKey(1);
const { genesis, genesisHash } = networkOf(authority);

/** A node process that can be killed and restarted with its directory and ports. */
class Member {
  node!: NodeProcess;

  constructor(
    private readonly t: Teardown,
    private readonly seed: number,
    private readonly seeds: () => readonly string[],
  ) {}

  async start(dir: string | undefined = this.node?.dir): Promise<void> {
    const { rpc, omni } = this.node?.ports ?? {};
    const flags: Record<string, string> =
      rpc === undefined ? {} : { "rpc-port": String(rpc), "omni-port": String(omni), "port-drift": "deny" };
    const member = { key: testKey(this.seed), genesis, seeds: this.seeds(), flags };
    this.node = await startProcessOf(this.t, { ...member, ...(dir !== undefined && { dir }) });
  }

  async kill(): Promise<void> {
    this.node.child.kill("SIGKILL");
    await this.node.ended;
  }
}

const accepting = async ({ node }: Member): Promise<boolean> => (await healthOf(node)).accepting;

/** Counts the programs of the submitted transactions. */
const included = async ({ node }: Member): Promise<number> =>
  (await askJson<{ count: number }>(node.port, "/storage-program/search?q=after&limit=200")).count;

/** Returns true if all heads are equal and have at least this number. */
async function haveEqualHeads(members: readonly Member[], minNumber: number): Promise<boolean> {
  const heads = await Promise.all(members.map(({ node }) => headOf(node)));
  return heads.every(({ number, hash }) => number >= minNumber && hash === heads[0]!.hash);
}

/** Checks that the stored blocks are one chain without gaps. */
async function checkChain(t: { is(a: unknown, b: unknown, message?: string): void }, { node }: Member): Promise<void> {
  const client = createClient(ChainService, createGrpcTransport({ baseUrl: node.ready.rpc }));
  let previous = genesisHash;
  let number = 0;
  for await (const { block } of client.listBlocks({ fromNumber: 1n })) {
    const { header } = decodeBlock(block!);
    number++;
    t.is(Number(header.number), number);
    t.is(header.previousHash, previous);
    previous = sha256(block!.header);
  }
  t.is(previous, (await headOf(node)).hash);
}

test("five nodes find each other from one address; a late one syncs 500 blocks; killed nodes recover", async (t) => {
  t.timeout(300_000);
  const members: Member[] = [1, 2, 3, 4, 5].map(
    (seed, i) => new Member(t, seed, () => (i === 0 ? [] : [endpointOf(members[0]!.node)])),
  );
  const [producer, second, third, fourth, late] = members as [Member, Member, Member, Member, Member];
  const early = [producer, second, third, fourth];

  // The authority has 500 blocks.
  const dir = await temporaryDirectory(t);
  await seedBlocks(join(dir, "gatehouse.sqlite"), authority, 500);
  await producer.start(dir);
  for (const member of [second, third, fourth]) {
    await member.start();
  }
  for (const { node } of early) {
    await eventually("all know each other", async () => {
      const peers = await peersOf(node);
      return peers.length === 3 && peers.every(({ verification, status }) => verification.status && status.online);
    });
  }
  await eventually("all have 500 blocks", () => haveEqualHeads(early, 500));

  // A late node is killed during its sync, and then its source is killed.
  await late.start();
  const seen: number[] = [];
  await eventually("the sync has started", async () => (await headOf(late.node)).number > 20);
  if (await accepting(late)) {
    seen.push((await headOf(late.node)).number);
  }
  await late.kill();
  await late.start();
  const resumed = (await headOf(late.node)).number;
  t.true(resumed > 20 && resumed <= 500, `resumed at ${resumed}`);
  t.log(`killed during its sync, the node resumed at block ${resumed}`);
  const source = (await healthOf(late.node)).subsystems["main_loop"]?.extra?.sync?.["peer"];
  const killed = early.find(({ node }) => endpointOf(node) === source) ?? second;
  await killed.kill();
  await eventually("the late node has synced without its source", async () => {
    const [isAccepting, { number }] = [await accepting(late), await headOf(late.node)];
    if (isAccepting) {
      seen.push(number);
    }
    return number === 500 && isAccepting;
  });
  t.true(
    seen.every((number) => number === 500),
    `accepting at ${seen.join()}`,
  );
  await killed.start();
  await eventually("all know each other again", async () => {
    const lists = await Promise.all(members.map(({ node }) => peersOf(node)));
    return lists.every((peers) => peers.length === 4 && peers.every(({ status }) => status.ready));
  });

  // The authority is killed while it produces blocks. Each submitted transaction is included once.
  const client = clientOf(t, fourth.node);
  const submit = async (nonce: number): Promise<void> => {
    const transaction = signTransaction(alice, nonce, createPublic(`after ${nonce}`, "{}"));
    await eventually("a transaction is accepted", async () => {
      await client.call(ChainService.method.submitTransaction, { transaction });
      return true;
    });
  };
  for (let nonce = 1; nonce <= 10; nonce++) {
    await submit(nonce);
  }
  await producer.kill();
  await submit(11);
  await third.kill();
  await producer.start();
  await third.start();
  await submit(12);
  await eventually("every transaction is in a block", async () => (await included(fourth)) === 12);
  await eventually("all heads are equal", () => haveEqualHeads(members, 501));
  for (const member of members) {
    await eventually("all are accepting", () => accepting(member));
    t.is(await included(member), 12);
  }
  await checkChain(t, late);
  await checkChain(t, producer);
});
