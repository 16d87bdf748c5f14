/** Follower rules: the nodes that get full blocks and pending transactions. */
import { createClient } from "@connectrpc/connect";
import test from "ava";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { peerReasons } from "../../src/peers/address-book/peer-reasons.js";
import { clientOf } from "../helpers/chain/submit.js";
import { type TestKey, testKey } from "../helpers/chain/keys.js";
import {
  endpointOf,
  headOf,
  healthOf,
  type NetworkNode,
  networkOf,
  peersOf,
  startMemberOf,
  untilAt,
} from "../helpers/nodes/network.js";
import { runCli } from "../helpers/nodes/run-cli.js";
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
  const transaction = signTransaction(owner, 1, secret, { network: sha256(text) });
  await clientOf(t, node).call(ChainService.method.submitTransaction, { transaction });
}

/** Starts an authority with the private program in block 1. */
async function startWithSecret(t: Teardown, node: Partial<NetworkNode> = {}): Promise<TestNode> {
  const started = await startMemberOf(t, { key: authority, genesis, ...node });
  await submit(t, started, node.genesis);
  await untilAt(started, 1);
  return started;
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
  const node = await startWithSecret(t, { flags: open });
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
    const node = await startWithSecret(t, { genesis: JSON.stringify(text), flags });
    const [bodies] = await countBodies(t, node, stranger);
    t.is(bodies, mayFollow ? 1 : 0, JSON.stringify({ ...text, ...flags }));
  }
});

test("a node warns at its start if an open network has private programs", async (t) => {
  const lone = networkOf(authority).genesis;
  const first = await startWithSecret(t, { genesis: lone });
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
  const node = await startWithSecret(t, { seeds, flags: listed });
  for (const key of [authority, inGenesis, inFile]) {
    t.deepEqual(await countBodies(t, node, key), [1, 1]);
  }
  const expectDenied = async (key: TestKey, label: string): Promise<void> => {
    const [bodies, reason] = await countBodies(t, node, key);
    t.is(bodies, 0, label);
    t.regex(String(reason), /^PERMISSION_DENIED: .*--peers.*peers add URL --identity KEY.*genesis/, label);
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

test("a listed node follows a listed network; another one is told everywhere why it cannot", async (t) => {
  const producer = await startWithSecret(t, { flags: listed });
  const seeds = [endpointOf(producer)];
  const follower = await startMemberOf(t, { key: inGenesis, genesis, seeds, flags: listed });
  await untilAt(follower, 1);

  const excluded = await startMemberOf(t, { key: stranger, genesis, seeds, flags: open });
  const control = createClient(ControlService, producer.control);
  await until(async () => (await peersOf(excluded)).some(({ verification }) => verification.status));
  const dropped = /Dropped the peer .*listed followers only/;
  await until(async () => dropped.test((await ask(excluded.port, "/diagnostics")).text));
  t.is((await headOf(excluded)).number, 0);
  for (const [place, read] of Object.entries(reasonsOf(excluded))) {
    await until(async () => /listed followers only: ask its operator/.test(await read()), place);
  }
  t.true((await peersOf(excluded))[0]!.status.online);
  const url = endpointOf(excluded);
  const remarkOf = async (): Promise<string | null> =>
    (await peersOf(producer)).find(({ identity }) => identity === stranger.publicKey)!.verification.message;
  await until(async () => (await remarkOf()) === peerReasons.unlistedHere(url, stranger.publicKey), "the producer");
  t.is((await ask(producer.port, "/diagnostics")).text.split("requests blocks. The peer is not").length, 2, "one line");
  await control.addPeer({ endpoint: url, identity: stranger.publicKey });
  await untilAt(excluded, 1);
  await until(async () => (await healthOf(excluded)).accepting, "accepting");
  await until(
    async () => (await healthOf(excluded)).subsystems["main_loop"]!.extra === undefined,
    "no reason at /health",
  );
  await until(async () => (await peersOf(excluded))[0]!.verification.message === null, "no reason");
  await until(async () => (await remarkOf()) === null, "no remark");
});

/** Places that show the reason for which a node does not follow. */
function reasonsOf(node: TestNode): Readonly<Record<string, () => Promise<string>>> {
  const control = createClient(ControlService, node.control);
  const cli = async (...args: string[]): Promise<string> => (await runCli(args)).stdout;
  return {
    "/health": async () => (await healthOf(node)).subsystems["main_loop"]!.extra?.reason ?? "",
    "/readyz": async () => (await ask(node.port, "/readyz")).text,
    "/peerlist": async () => (await ask(node.port, "/peerlist")).text,
    "/info": async () => (await ask(node.port, "/info")).text,
    "address book": async () => (await control.listBook({})).entries.map(({ message }) => message ?? "").join(),
    "gatehouse health": () => cli("health", "--node", node.rpcUrl),
    "gatehouse peers": () => cli("peers", "--node", node.rpcUrl),
    "gatehouse doctor": () =>
      cli(...["doctor", "--data-dir", node.dir, "--host", "127.0.0.1", "--rpc-port", String(node.port), "--json"]),
  };
}

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
