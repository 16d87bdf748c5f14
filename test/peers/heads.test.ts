/** Signed heads: an authority re-signs its latest block while idle, nodes pass that on, and reject forged ones. */
import { createClient } from "@connectrpc/connect";
import test, { type ExecutionContext } from "ava";
import { verify } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
  type Block,
  type HeadStatement,
  type SignedHead,
  SignedHeadSchema,
} from "../../gen/gatehouse/chain/v1/block_pb.js";
import { ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { PeerService } from "../../gen/gatehouse/peer/v1/peer_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { createHeadStatements, type HeadStatements } from "../../src/chain/writer/head-statements.js";
import type { ChainHead } from "../../src/chain/blocks/store-types.js";
import { clientOf, submit } from "../helpers/chain/submit.js";
import { askHead, readSignedHead, signedHeadMs, signedHead } from "../helpers/chain/heads.js";
import { testKey } from "../helpers/chain/keys.js";
import {
  chainFailure,
  endpointOf,
  evidenceOf,
  makeBlocks,
  networkOf,
  startMemberOf,
  statusAt,
  untilPeerIs,
  untilPolled,
} from "../helpers/nodes/network.js";
import { connectStranger, startOddPeer } from "../helpers/nodes/odd-peer.js";
import { silentPeer, type TestNode } from "../helpers/nodes/start-node.js";
import { until } from "../helpers/nodes/until.js";

const [authority, follower, stranger] = [testKey(1), testKey(2), testKey(50)];
const { genesis, genesisHash } = networkOf(authority);
/** Nodes poll each other only at the start, so later news must be announced. */
const pollRarely = { "loop-interval": "600" };
/** Nodes poll each other every 50 ms. */
const pollOften = { "loop-interval": "0.05" };
const signEvery = (stateHeadEveryMs: number) => ({ options: { stateHeadEveryMs } });

/** Waits for a newer signed head, and returns its time in ms. */
async function untilNewer(node: TestNode): Promise<number> {
  const before = await signedHeadMs(node);
  await until(async () => (await signedHeadMs(node)) > before);
  return await signedHeadMs(node);
}

test("an idle authority re-signs its head, and followers and their followers get it", async (t) => {
  const member = { genesis, flags: pollRarely, ...signEvery(300) };
  const producer = await startMemberOf(t, { ...member, key: authority });
  const startMs = Date.now();
  const near = await startMemberOf(t, { ...member, key: follower, seeds: [endpointOf(producer)] });
  const far = await startMemberOf(t, { ...member, key: testKey(3), seeds: [endpointOf(near)] });
  for (const node of [producer, near, far]) {
    t.true((await untilNewer(node)) > startMs);
    await untilNewer(node);
    const { head, signedHead: statement } = await askHead(node);
    t.like(head, { number: 0, hash: genesisHash, genesisHash, header: "", signature: "" });
    t.like(statement, { number: 0n, hash: genesisHash, genesisHash, proposer: authority.publicKey });
    t.true(Number(statement!.timestampMs) <= Date.now());
  }

  // A new block replaces the signed head of the previous one.
  await submit(clientOf(t, producer), 1);
  for (const node of [producer, near, far]) {
    await until(async () => (await askHead(node)).signedHead?.number === 1n);
    const { head, signedHead: statement } = await askHead(node);
    const [header, signature] = [head.header, head.signature].map((text) => Buffer.from(text, "base64"));
    const signedBytes = Buffer.concat([Buffer.from("gatehouse block v3\0"), header!]);
    t.is(sha256(header!), head.hash);
    t.true(verify(null, signedBytes, authority.privateKey, signature!));
    t.is(statement!.hash, head.hash);
    // The authority signs the head again after the interval.
    t.true(Number(statement!.timestampMs) >= head.timestamp + 290, `${statement!.timestampMs} after ${head.timestamp}`);
  }

  // Signed heads are not stored: after a restart a follower gets a new one, and an authority signs one at once.
  await near.stop();
  const again = await startMemberOf(t, { ...{ key: follower, genesis, dir: near.dir }, seeds: [endpointOf(producer)] });
  await until(async () => (await signedHeadMs(again)) > startMs);
  await producer.stop();
  const stoppedMs = Date.now();
  const { dir } = producer;
  const lone = await startMemberOf(t, { ...member, ...signEvery(3_600_000), key: authority, dir });
  await until(async () => (await signedHeadMs(lone)) >= stoppedMs);
});

/** A signed head of the authority for a block, or for the genesis without one. */
function signHead(timeMs: number, block?: Block): SignedHead {
  const [number, hash] = block === undefined ? [0n, genesisHash] : [1n, sha256(block.header)];
  return signedHead(authority, { number, hash, timestampMs: BigInt(timeMs), genesisHash });
}

type Statement = Pick<HeadStatement, "number" | "hash" | "timestampMs" | "genesisHash">;

test("ignores signed heads of a wrong signer, network, block or time, and accepts the next valid one", async (t) => {
  const [[block], [other]] = [await makeBlocks(t, authority, 1), await makeBlocks(t, authority, 1)];
  const oldMs = Date.now();
  let [signed, polls] = [signHead(oldMs, block), 0];
  const peer = await startOddPeer(t, {
    ...{ key: stranger, genesisHash },
    status() {
      polls++;
      return { ...statusAt(block), signedHead: signed };
    },
    blocks: async (_, send) => await send(block),
  });
  const member = { key: follower, genesis, seeds: [peer.endpoint], flags: pollOften };
  const node = await startMemberOf(t, { ...member, ...signEvery(300) });
  const observer = connectStranger(t, node.ports["omni"]!, testKey(60));
  const passedOnMs = async (): Promise<number> => {
    const { status } = await observer.call(PeerService.method.exchangeStatus, {});
    return status!.signedHead === undefined ? 0 : Number(readSignedHead(status!.signedHead).timestampMs);
  };
  // The head arrives with the block, and again after the block is applied.
  await until(async () => (await signedHeadMs(node)) === oldMs);
  await untilPolled(node);
  t.is(await signedHeadMs(node), oldMs, "the peer sends nothing newer");

  // Each one except the last would be newer if it were valid.
  const flip = (bytes: Uint8Array): Uint8Array => bytes.map((byte, i) => (i === 5 ? byte ^ 1 : byte));
  const byAuthority = (valid: Statement, fields: Partial<Statement>) => signedHead(authority, { ...valid, ...fields });
  const asAuthority = { proposer: authority.publicKey };
  const bad: Readonly<Record<string, readonly [(valid: Statement, ms: number) => SignedHead, RegExp?]>> = {
    "no authority": [(valid) => signedHead(stranger, valid), /is not from an authority of this network/],
    "a forged proposer": [(valid) => signedHead(stranger, { ...valid, ...asAuthority }), /not signed by its proposer/],
    "a flipped bit": [
      (valid) => {
        const { statement, signature } = signedHead(authority, valid);
        return create(SignedHeadSchema, { statement, signature: flip(signature) });
      },
      /not signed by its proposer/,
    ],
    "another network": [(valid) => byAuthority(valid, { genesisHash: sha256("x") }), /is for another network/],
    "no statement": [() => create(SignedHeadSchema, { statement: Buffer.from("no statement") }), /cannot be decoded/],
    "another block": [(valid) => byAuthority(valid, { hash: sha256(other!.header) })],
    "an unknown block": [(valid) => byAuthority(valid, { number: 2n })],
    "the block before": [(_, ms) => signHead(ms)],
    "a future time": [(_, ms) => signHead(ms + 90_000, block)],
    "a time before the block": [() => signHead(1, block)],
    "an older time": [() => signHead(oldMs - 1, block)],
  };
  let latestMs = oldMs;
  for (const [label, [make, message]] of Object.entries(bad)) {
    const timestampMs = latestMs + 500;
    const valid = { number: 1n, hash: sha256(block!.header), timestampMs: BigInt(timestampMs), genesisHash };
    signed = make(valid, timestampMs);
    const before = polls;
    await until(() => polls >= before + 2, label);
    if (message !== undefined) {
      await untilPeerIs(node, message);
    }
    t.deepEqual([await signedHeadMs(node), await passedOnMs()], [latestMs, latestMs], label);
    // The node accepts a valid head of the same peer, so it has processed the invalid one.
    latestMs += 1_000;
    signed = signHead(latestMs, block);
    await until(async () => (await signedHeadMs(node)) === latestMs, label);
  }
  t.is((await askHead(node)).signedHead!.proposer, authority.publicKey);
});

test("an authority signs no head without the latest block, with a clock ahead, or after a fork", async (t) => {
  const [[block], [other]] = [await makeBlocks(t, authority, 1), await makeBlocks(t, authority, 1)];
  let behindMs = 0;
  let evidence: object[] = [];
  const peer = await startOddPeer(t, {
    ...{ key: stranger, genesisHash },
    status: () => ({ accepting: true, timeMs: BigInt(Date.now() - behindMs), evidence }),
  });
  const flags = { ...pollOften, recover: false };
  const node = await startMemberOf(t, { key: authority, genesis, seeds: [silentPeer], flags, ...signEvery(100) });
  await untilPolled(node);
  t.is(await signedHeadMs(node), 0);
  await createClient(ControlService, node.control).addPeer({ endpoint: peer.endpoint });
  await untilNewer(node);

  const expectSilence = async (reason: RegExp): Promise<void> => {
    await until(async () => reason.test(await chainFailure(node)));
    // One signed head may still be in flight.
    await untilPolled(node);
    const before = await signedHeadMs(node);
    await untilPolled(node);
    t.is(await signedHeadMs(node), before);
  };
  behindMs = 3_600_000;
  await expectSilence(/clock is 3[56]\d\d s ahead/);
  behindMs = 0;
  await untilNewer(node);

  evidence = [evidenceOf(block!, other!)];
  await expectSilence(/this node's own key, so it produces no blocks/);
});

/** Creates the store of signed heads, with one block and a clock that the test sets. */
function setUp(t: ExecutionContext) {
  const head: ChainHead = {
    ...{ number: 1n, hash: sha256("block 1"), timestampMs: 15_000n, genesisHash },
    ...{ header: new Uint8Array(), signature: new Uint8Array(), lowestBlock: 1n },
  };
  const state = { newerCount: 0, nowMs: 100_000, isHidden: false };
  const contradictions: string[] = [];
  const heads: HeadStatements = createHeadStatements({
    ...{ authorities: [authority.publicKey, follower.publicKey], network: genesisHash },
    head: () => (state.isHidden ? undefined : head),
    nowMs: () => state.nowMs,
    minGapMs: 10_000,
    onNewer: () => state.newerCount++,
    onContradiction: ({ hash }) => contradictions.push(hash),
  });
  const signHeadAt = (timeMs: number, hash = head.hash, key = authority): SignedHead =>
    signedHead(key, { number: 1n, hash, timestampMs: BigInt(timeMs), genesisHash });
  const expectLatest = (timeMs: number, count: number): void => {
    t.deepEqual([heads.latestMs(head.hash), state.newerCount], [timeMs, count]);
  };
  return { heads, head, state, signHeadAt, expectLatest, contradictions };
}

test("passes on a signed head of any authority that is at least 10 s newer and at most 60 s ahead", (t) => {
  const { heads, head, state, signHeadAt, expectLatest } = setUp(t);
  for (const [timeMs, latestMs, count, key] of [
    [14_999, 0, 0],
    [20_000, 20_000, 1],
    [29_999, 20_000, 1],
    [30_000, 30_000, 2, follower],
    [160_001, 30_000, 2],
    [160_000, 160_000, 3],
  ] as const) {
    heads.receive(signHeadAt(timeMs, head.hash, key));
    expectLatest(latestMs, count);
  }
  t.is(heads.latestSignedHead(sha256("another block")), undefined);
  state.nowMs = 200_000;
  // Heads from the block producer have no minimum gap and no limit in time.
  heads.accept(signHeadAt(160_000));
  expectLatest(160_000, 3);
  heads.accept(signHeadAt(160_001));
  expectLatest(160_001, 4);
});

test("limits the signature checks of unsolicited heads for each sender", (t) => {
  const { heads, signHeadAt, expectLatest } = setUp(t);
  const forged = { ...signHeadAt(50_000), signature: new Uint8Array(64) };
  for (let i = 0; i < 4; i++) {
    t.throws(() => heads.receive(forged, "many"), { message: /not signed/ });
  }
  t.notThrows(() => heads.receive(forged, "many"), "the head is dropped without a check");
  heads.receive(signHeadAt(50_000), "many");
  expectLatest(0, 0);
  heads.receive(signHeadAt(50_000), "another");
  expectLatest(50_000, 1);
  // A head that is not newer is not checked, whoever sends it.
  t.notThrows(() => heads.receive(forged, "another"));
  t.notThrows(() => heads.receive(forged));
});

test("reports a signed head for another block with the same number once", (t) => {
  const { heads, signHeadAt, expectLatest, contradictions } = setUp(t);
  const [one, two] = [sha256("one"), sha256("two")];
  t.throws(() => heads.receive({ ...signHeadAt(20_000, one), signature: new Uint8Array(64) }), {
    message: /not signed/,
  });
  t.deepEqual(contradictions, []);
  heads.receive(signHeadAt(20_000, one));
  heads.receive(signHeadAt(20_000, one));
  heads.receive(signHeadAt(20_000, two));
  t.deepEqual(contradictions, [one]);
  expectLatest(0, 0);
});

test("rejects signed heads during a snapshot sync, with the reason", (t) => {
  const { heads, state, signHeadAt } = setUp(t);
  state.isHidden = true;
  t.throws(() => heads.accept(signHeadAt(20_000)), { message: /it is syncing from a snapshot/ });
});
