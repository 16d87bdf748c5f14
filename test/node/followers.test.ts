/** Follower rules: the nodes that get full blocks and pending transactions. */
import { createClient } from "@connectrpc/connect";
import test from "ava";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { connectGrpc } from "../helpers/wire/grpc-client.js";
import { type TestKey, testKey } from "../helpers/chain/keys.js";
import { endpointOf, headOf, networkOf, peersOf, startMemberOf } from "../helpers/nodes/network.js";
import { ask } from "../helpers/wire/plain-client.js";
import { connectStranger } from "../helpers/nodes/odd-peer.js";
import { readFailure } from "../helpers/wire/rpc-clients.js";
import { silentPeer, startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { type Operation, signTransaction } from "../helpers/chain/transactions.js";
import { until } from "../helpers/nodes/until.js";

const [authority, inGenesis, inFile] = [testKey(1), testKey(2), testKey(3)];
const [byOperator, stranger, owner] = [testKey(4), testKey(5), testKey(6)];
const genesis = JSON.stringify({ authorities: [authority.publicKey], followers: [inGenesis.publicKey] });
const secret: Operation = { case: "createProgram", value: { programName: "secret" } };
const listed = { followers: "listed" };
const open = { followers: "open" };
const warning = /There are private programs, and every node may follow.*--followers listed/;

async function submit(t: Teardown, node: TestNode, text = genesis): Promise<void> {
  const client = connectGrpc(node.port);
  t.teardown(() => client.close());
  await client.call(ChainService.method.submitTransaction, {
    transaction: signTransaction(owner, 1, secret, { network: sha256(text) }),
  });
}

/** Counts the bodies of block 1 that a node with this key gets: by number, and in the stream or its error. */
async function countBodies(t: Teardown, node: TestNode, key: TestKey): Promise<readonly [number, number | string]> {
  const client = connectStranger(t, node.ports["omni"]!, key);
  const count = (transactions: readonly { body: Uint8Array }[]): number =>
    transactions.filter(({ body }) => body.length > 0).length;
  const { block } = await client.call(ChainService.method.getBlock, { number: 1n });
  try {
    let bodies = 0;
    for await (const message of client.stream(ChainService.method.listBlocks, { fromNumber: 1n })) {
      bodies += count(message.block!.transactions);
    }
    return [count(block!.transactions), bodies];
  } catch (error) {
    const { reason, message } = readFailure(error);
    return [count(block!.transactions), `${reason}: ${message}`];
  }
}

test("on an open network, every node gets full blocks", async (t) => {
  const node = await startMemberOf(t, { key: authority, genesis, flags: open });
  await submit(t, node);
  await until(async () => (await headOf(node)).number === 1);
  t.deepEqual(await countBodies(t, node, stranger), [1, 1]);
});

test("a `followers` list in the genesis restricts followers, even if empty; --followers overrides it", async (t) => {
  const { authorities } = JSON.parse(genesis) as { authorities: string[] };
  for (const [text, flags, mayFollow] of [
    [{ authorities }, {}, true],
    [{ authorities, followers: [] }, {}, false],
    [{ authorities, followers: [inGenesis.publicKey] }, {}, false],
    [{ authorities, followers: [] }, open, true],
    [{ authorities }, listed, false],
  ] as const) {
    const node = await startMemberOf(t, { key: authority, genesis: JSON.stringify(text), flags });
    await submit(t, node, JSON.stringify(text));
    await until(async () => (await headOf(node)).number === 1);
    const [bodies] = await countBodies(t, node, stranger);
    t.is(bodies, mayFollow ? 1 : 0, JSON.stringify({ ...text, ...flags }));
  }
});

test("a node warns at its start if an open network has private programs", async (t) => {
  const lone = networkOf(authority).genesis;
  const first = await startMemberOf(t, { key: authority, genesis: lone });
  await submit(t, first, lone);
  await until(async () => (await headOf(first)).number === 1);
  const log = async (node: TestNode): Promise<string> => (await ask(node.port, "/diagnostics")).text;
  t.notRegex(await log(first), warning, "there was no private program at the first start");
  await first.stop();
  const { dir } = first;
  const again = await startMemberOf(t, { key: authority, genesis: lone, dir });
  await until(async () => warning.test(await log(again)));
  await again.stop();
  const closed = await startMemberOf(t, { key: authority, genesis: lone, dir, flags: listed });
  t.notRegex(await log(closed), warning);
});

test("on a listed network, genesis, peers file and operator name the nodes that get full blocks", async (t) => {
  const seeds = [silentPeer, { url: "https://127.0.0.1:10", identity: inFile.publicKey }];
  const node = await startMemberOf(t, { key: authority, genesis, seeds, flags: listed });
  await submit(t, node);
  await until(async () => (await headOf(node)).number === 1);
  for (const key of [authority, inGenesis, inFile]) {
    t.deepEqual(await countBodies(t, node, key), [1, 1]);
  }
  const denied = [0, /^PERMISSION_DENIED: .*--peers.*peers add --identity.*genesis/] as const;
  const expectDenied = async (key: TestKey, label: string): Promise<void> => {
    const [bodies, reason] = await countBodies(t, node, key);
    t.is(bodies, denied[0], label);
    t.regex(String(reason), denied[1], label);
  };
  await expectDenied(stranger, "a stranger");
  await expectDenied(byOperator, "before the operator names it");
  t.deepEqual(await countBodies(t, node, owner).then(([bodies]) => bodies), 1, "its own program");

  const control = createClient(ControlService, node.control);
  const endpoint = "https://127.0.0.1:11";
  await control.addPeer({ endpoint });
  await expectDenied(byOperator, "named by its address alone");
  await control.addPeer({ endpoint, identity: byOperator.publicKey });
  t.deepEqual(await countBodies(t, node, byOperator), [1, 1]);
  await control.removePeer({ endpoint });
  await expectDenied(byOperator, "once it is removed");
});

test("a listed node follows a listed network; another one logs why it cannot", async (t) => {
  const producer = await startMemberOf(t, { key: authority, genesis, flags: listed });
  await submit(t, producer);
  await until(async () => (await headOf(producer)).number === 1);
  const seeds = [endpointOf(producer)];
  const follower = await startMemberOf(t, { key: inGenesis, genesis, seeds, flags: listed });
  await until(async () => (await headOf(follower)).number === 1);

  const excluded = await startMemberOf(t, { key: stranger, genesis, seeds, flags: open });
  const control = createClient(ControlService, producer.control);
  await until(async () => (await peersOf(excluded)).some(({ verification }) => verification.status));
  await until(async () =>
    /Dropped the peer .*listed followers only/.test((await ask(excluded.port, "/diagnostics")).text),
  );
  t.is((await headOf(excluded)).number, 0);
  const url = endpointOf(excluded);
  await control.addPeer({ endpoint: url, identity: stranger.publicKey });
  await until(async () => (await headOf(excluded)).number === 1);
});

test("pending transactions are relayed only to verified peers that may follow", async (t) => {
  const lone = networkOf(authority).genesis;
  for (const [followers, isRelayed] of [
    ["open", true],
    ["listed", false],
  ] as const) {
    const node = await startMemberOf(t, { key: testKey(7), genesis: lone, flags: { followers } });
    const peer = await startMemberOf(t, { key: stranger, genesis: lone, seeds: [endpointOf(node)] });
    await until(async () => (await peersOf(node)).some(({ verification }) => verification.status));
    const submitted = submit(t, node, lone);
    if (isRelayed) {
      await submitted;
      const client = createClient(ChainService, peer.control);
      await until(async () => (await client.listPendingTransactions({})).transactions.length === 1);
    } else {
      const { reason, message } = readFailure(await t.throwsAsync(submitted));
      t.is(reason, "RELAY_UNAVAILABLE");
      t.regex(message, /of those that may follow/);
    }
  }
});

test("--followers listed requires --omni-tls on", async (t) => {
  const dir = await temporaryDirectory(t);
  await writeFile(join(dir, "genesis.json"), genesis);
  const flags = { genesis: join(dir, "genesis.json"), "omni-tls": "off", ...listed };
  await t.throwsAsync(startTestNode(t, flags, dir), { message: /--followers listed requires --omni-tls on/ });
  await t.throwsAsync(startTestNode(t, { ...flags, followers: undefined }, dir), { message: /--followers open/ });
});
