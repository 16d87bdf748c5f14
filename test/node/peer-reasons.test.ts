/** Every reason for which a node does not use a peer, or sends it no blocks, is shown wherever an operator looks. */
import { create, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { Metadata, type ServiceError } from "@grpc/grpc-js";
import test from "ava";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { StatusSchema } from "../../gen/google/rpc/status_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { peerReasons } from "../../src/peers/address-book/peer-reasons.js";
import { testKey } from "../helpers/chain/keys.js";
import { freePort } from "../helpers/nodes/free-port.js";
import {
  endpointOf,
  makeBlocks,
  networkOf,
  peersOf,
  sendAll,
  seedBlocks,
  startMemberOf,
  statusAt,
} from "../helpers/nodes/network.js";
import { type OddPeer, startOddPeer } from "../helpers/nodes/odd-peer.js";
import { runCli } from "../helpers/nodes/run-cli.js";
import { silentPeer, startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { ask } from "../helpers/wire/plain-client.js";

const [authority, member, stranger, other] = [testKey(1), testKey(2), testKey(3), testKey(50)];
const { genesis, genesisHash } = networkOf(authority);

/** A node with a peer, and the reason that it shows for the peer. */
interface Example {
  readonly node: TestNode;
  readonly reason: string;
}

/** Starts a node whose peers file names these peers. */
const startWith = (t: Teardown, ...seeds: readonly (string | { readonly url: string; readonly identity: string })[]) =>
  startMemberOf(t, { key: member, genesis, seeds });

const startOdd = (t: Teardown, odd: Partial<OddPeer> = {}) => startOddPeer(t, { key: other, genesisHash, ...odd });

/** Starts a node whose only peer reports two blocks, and sends blocks in this way. */
async function startSynced(t: Teardown, blocks: OddPeer["blocks"]): Promise<TestNode> {
  const [, latest] = await makeBlocks(t, authority, 2);
  return await startWith(t, (await startOdd(t, { status: () => statusAt(latest), blocks })).endpoint);
}

/** Starts an authority with a block, for listed followers only, and a node that is not listed. */
async function startUnlisted(t: Teardown): Promise<{ readonly producer: TestNode; readonly follower: TestNode }> {
  const dir = await temporaryDirectory(t);
  await seedBlocks(join(dir, "gatehouse.sqlite"), authority, 1);
  const producer = await startMemberOf(t, { key: authority, genesis, dir, flags: { followers: "listed" } });
  const follower = await startMemberOf(t, { key: stranger, genesis, seeds: [endpointOf(producer)] });
  return { producer, follower };
}

const examples: Readonly<Record<keyof typeof peerReasons, string | ((t: Teardown) => Promise<Example>)>> = {
  async notCalled(t) {
    const dir = await temporaryDirectory(t);
    await writeFile(join(dir, "peers.json"), JSON.stringify([{ url: silentPeer }]));
    // A node without a genesis calls no peer.
    return { node: await startTestNode(t, {}, dir), reason: peerReasons.notCalled() };
  },
  async unreachable(t) {
    return { node: await startWith(t, silentPeer), reason: peerReasons.unreachable("The connection failed: ") };
  },
  changedKey: "The handshake that follows at once replaces it.",
  async invalidStatement(t) {
    const changeNodeInfo: OddPeer["changeNodeInfo"] = (info) => ({ ...info, challenge: Buffer.alloc(32) });
    const { endpoint } = await startOdd(t, { changeNodeInfo });
    const reason = peerReasons.invalidStatement("The peer's node info was created for another node.");
    return { node: await startWith(t, endpoint), reason };
  },
  async rejectedThisNode(t) {
    const peer = await startMemberOf(t, { key: stranger, genesis, flags: { "allow-private-peers": false } });
    return { node: await startWith(t, endpointOf(peer)), reason: peerReasons.rejectedThisNode("The address ") };
  },
  async otherNetwork(t) {
    const foreign = await startMemberOf(t, { key: stranger, genesis: '{"name":"other"}' });
    const reason = peerReasons.otherNetwork(sha256('{"name":"other"}'), genesisHash);
    return { node: await startWith(t, endpointOf(foreign)), reason };
  },
  async ownAddress(t) {
    const port = String(await freePort());
    const seeds = [`https://127.0.0.1:${port}`];
    const node = await startMemberOf(t, { key: member, genesis, seeds, flags: { "omni-port": port } });
    return { node, reason: peerReasons.ownAddress() };
  },
  async unexpectedKey(t) {
    const { endpoint } = await startOdd(t);
    const node = await startWith(t);
    await createClient(ControlService, node.control).addPeer({ endpoint, identity: stranger.publicKey });
    return { node, reason: peerReasons.unexpectedKey(endpoint, other.publicKey, stranger.publicKey, false) };
  },
  async otherAddress(t) {
    const announced = "https://127.0.0.1:9";
    const peer = await startOdd(t, { changeNodeInfo: (info) => ({ ...info, endpoint: announced }) });
    const gossip = [{ endpoint: peer.endpoint, identity: other.publicKey }];
    const { endpoint } = await startOdd(t, { key: stranger, peers: gossip });
    return { node: await startWith(t, endpoint), reason: peerReasons.otherAddress(announced) };
  },
  async heldIdentity(t) {
    const [one, two] = [await startOdd(t), await startOdd(t)];
    const node = await startWith(t, one.endpoint);
    await until(async () => (await peersOf(node))[0]!.status.online);
    await createClient(ControlService, node.control).addPeer({ endpoint: two.endpoint });
    return { node, reason: peerReasons.heldIdentity(one.endpoint) };
  },
  async movedIdentity(t) {
    const peer = await startMemberOf(t, { key: stranger, genesis });
    const node = await startWith(t, endpointOf(peer));
    await until(async () => (await peersOf(node))[0]!.status.online);
    await peer.stop();
    await until(async () => !(await peersOf(node))[0]!.status.online);
    const seeds = [endpointOf(node)];
    const moved = await startMemberOf(t, { key: stranger, genesis, dir: peer.dir, seeds });
    return { node, reason: peerReasons.movedIdentity(endpointOf(moved)) };
  },
  async stalled(t) {
    const node = await startSynced(t, () => new Promise(() => undefined));
    return { node, reason: peerReasons.stalled("It sent no block for 10 s.") };
  },
  async invalidData(t) {
    const foreign = await makeBlocks(t, other, 1);
    return {
      node: await startSynced(t, sendAll(foreign)),
      reason: peerReasons.invalidData("It sent an invalid block. "),
    };
  },
  async missingBlock(t) {
    return { node: await startSynced(t, () => Promise.resolve()), reason: peerReasons.missingBlock(2n) };
  },
  async refusedBlocks(t) {
    const metadata = new Metadata();
    const details = toBinary(StatusSchema, create(StatusSchema, { code: 8, message: "Too busy." }));
    metadata.set("grpc-status-details-bin", Buffer.from(details));
    const error: ServiceError = Object.assign(new Error(), { code: 8, details: "Too busy.", metadata });
    const node = await startSynced(t, () => Promise.reject(error));
    return { node, reason: peerReasons.refusedBlocks("Too busy.") };
  },
  async unlistedThere(t) {
    const { follower } = await startUnlisted(t);
    return { node: follower, reason: peerReasons.unlistedThere(endpointOf(follower), stranger.publicKey) };
  },
  async unlistedHere(t) {
    const { producer, follower } = await startUnlisted(t);
    return { node: producer, reason: peerReasons.unlistedHere(endpointOf(follower), stranger.publicKey) };
  },
};

for (const [name, start] of Object.entries(examples)) {
  if (typeof start === "string") {
    continue;
  }
  test(`shows why a peer is not used: ${name}`, async (t) => {
    const { node, reason } = await start(t);
    const cli = async (...args: string[]): Promise<string> => (await runCli([...args, "--data-dir", node.dir])).stdout;
    const places: Readonly<Record<string, () => Promise<string>>> = {
      "/peerlist": async () => (await ask(node.port, "/peerlist")).text,
      "gatehouse peers book": () => cli("peers", "book"),
      "gatehouse peers book --json": () => cli("peers", "book", "--json"),
      "gatehouse doctor": () => cli("doctor", "--host", "127.0.0.1", "--rpc-port", String(node.port), "--json"),
    };
    for (const [place, read] of Object.entries(places)) {
      let last = "";
      await until(async () => {
        last = (await read()).replaceAll('\\"', '"');
        return last.includes(reason);
      }).catch(() => t.fail(`${place}: ${last}`));
    }
    t.pass();
  });
}
