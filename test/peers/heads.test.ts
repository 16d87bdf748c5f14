/** What an authority says anew of its newest block while it makes none, how it gets around, and whom nobody believes. */
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
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { PeerService } from "../../gen/gatehouse/peer/v1/peer_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { createHeadStatements, type HeadStatements } from "../../src/chain/writer/head-statements.js";
import type { ChainHead } from "../../src/chain/blocks/store.js";
import { connectGrpc } from "../helpers/wire/grpc-client.js";
import { askHead, readSignedHead, saidMs, signedHead } from "../helpers/chain/heads.js";
import { testKey } from "../helpers/chain/keys.js";
import { endpointOf, makeBlocks, networkOf, peersOf, startMemberOf, statusAt } from "../helpers/nodes/network.js";
import { connectStranger, startOddPeer } from "../helpers/nodes/odd-peer.js";
import { askJson } from "../helpers/wire/plain-client.js";
import { silentPeer, type TestNode } from "../helpers/nodes/start-node.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { until } from "../helpers/nodes/until.js";

const [authority, follower, stranger] = [testKey(1), testKey(2), testKey(50)];
const { genesis, genesisHash } = networkOf(authority);
/** Nodes look at each other at their start and then no more: what they learn after that was announced. */
const rarely = { "loop-interval": "600" };
/** And here they ask each other all the time. */
const always = { "loop-interval": "0.05" };
const often = (stateHeadEveryMs: number) => ({ options: { stateHeadEveryMs } });

interface Health {
  readonly main_loop: { readonly iterations_total: number };
  readonly subsystems: { readonly chain: { readonly status: string; readonly lastError: { message: string } | null } };
}
const health = ({ port }: { readonly port: number }): Promise<Health> => askJson<Health>(port, "/health");

async function getsNewer(node: TestNode): Promise<number> {
  const before = await saidMs(node);
  await until(async () => (await saidMs(node)) > before);
  return await saidMs(node);
}

/** Waits until the node has asked its peers some times. */
async function hasAsked(node: TestNode, times = 3): Promise<void> {
  const ticks = async (): Promise<number> => (await health(node)).main_loop.iterations_total;
  const before = await ticks();
  await until(async () => (await ticks()) >= before + times);
}

test("the head of an idle network gets newer on the authority, on its follower and on the follower's follower", async (t) => {
  const member = { genesis, flags: rarely, ...often(300) };
  const maker = await startMemberOf(t, { ...member, key: authority });
  const beginMs = Date.now();
  const near = await startMemberOf(t, { ...member, key: follower, seeds: [endpointOf(maker)] });
  const far = await startMemberOf(t, { ...member, key: testKey(3), seeds: [endpointOf(near)] });
  for (const node of [maker, near, far]) {
    t.true((await getsNewer(node)) > beginMs);
    await getsNewer(node);
    const { head, said } = await askHead(node);
    t.like(head, { number: 0, hash: genesisHash, genesisHash, header: "", signature: "" });
    t.like(said, { number: 0n, hash: genesisHash, genesisHash, proposer: authority.publicKey });
    t.true(Number(said!.timestampMs) <= Date.now());
  }

  // A block is word enough; what was said of the one before is said no more.
  const client = connectGrpc(maker.port);
  t.teardown(() => client.close());
  await client.call(ChainService.method.submitTransaction, {
    transaction: signTransaction(testKey(90), 1, createPublic("p", "{}")),
  });
  for (const node of [maker, near, far]) {
    await until(async () => (await askHead(node)).said?.number === 1n);
    const { head, said } = await askHead(node);
    const [header, signature] = [head.header, head.signature].map((text) => Buffer.from(text, "base64"));
    t.is(sha256(header!), head.hash);
    t.true(
      verify(null, Buffer.concat([Buffer.from("gatehouse block v3\0"), header!]), authority.privateKey, signature!),
    );
    t.is(said!.hash, head.hash);
    // Not before the interval after the block was over.
    t.true(Number(said!.timestampMs) >= head.timestamp + 290, `${said!.timestampMs} after ${head.timestamp}`);
  }

  // Nothing is kept over a restart: a follower is told anew, and an authority says it at once.
  await near.stop();
  const again = await startMemberOf(t, { ...{ key: follower, genesis, dir: near.dir }, seeds: [endpointOf(maker)] });
  await until(async () => (await saidMs(again)) > beginMs);
  await maker.stop();
  const stoppedMs = Date.now();
  const { dir } = maker;
  const lone = await startMemberOf(t, { ...member, ...often(3_600_000), key: authority, dir });
  await until(async () => (await saidMs(lone)) >= stoppedMs);
});

/** A statement of the authority about a block; the genesis's where there is none. */
function statementAt(timeMs: number, block?: Block): SignedHead {
  const [number, hash] = block === undefined ? [0n, genesisHash] : [1n, sha256(block.header)];
  return signedHead(authority, { number, hash, timestampMs: BigInt(timeMs), genesisHash });
}

type About = Pick<HeadStatement, "number" | "hash" | "timestampMs" | "genesisHash">;

test("what a peer holds back stays old, and nobody is believed who is no authority, or of another network, block or time", async (t) => {
  const [[block], [other]] = [await makeBlocks(t, authority, 1), await makeBlocks(t, authority, 1)];
  const oldMs = Date.now();
  let [given, asked] = [statementAt(oldMs, block), 0];
  const peer = await startOddPeer(t, {
    ...{ key: stranger, genesisHash },
    status() {
      asked++;
      return { ...statusAt(block), signedHead: given };
    },
    blocks: async (_, send) => await send(block),
  });
  const node = await startMemberOf(t, { key: follower, genesis, seeds: [peer.endpoint], flags: always, ...often(300) });
  const passedOn = connectStranger(t, node.ports["omni"]!, testKey(60));
  const passedOnMs = async (): Promise<number> => {
    const { status } = await passedOn.call(PeerService.method.exchangeStatus, {});
    return status!.signedHead === undefined ? 0 : Number(readSignedHead(status!.signedHead).timestampMs);
  };
  // It comes with the block, and again once that is here.
  await until(async () => (await saidMs(node)) === oldMs);
  await hasAsked(node);
  t.is(await saidMs(node), oldMs, "nobody says anything newer");

  // Each but the last would be news, were it true.
  const bad: Readonly<Record<string, readonly [(about: About, ms: number) => SignedHead, RegExp?]>> = {
    "no authority": [(about) => signedHead(stranger, about), /is not from an authority of this network/],
    "another's name": [
      (about) => signedHead(stranger, { ...about, proposer: authority.publicKey }),
      /not signed by its proposer/,
    ],
    "a flipped bit": [
      (about) => {
        const { statement, signature } = signedHead(authority, about);
        return create(SignedHeadSchema, {
          statement,
          signature: signature.map((byte, i) => (i === 5 ? byte ^ 1 : byte)),
        });
      },
      /not signed by its proposer/,
    ],
    "another network": [
      (about) => signedHead(authority, { ...about, genesisHash: sha256("x") }),
      /is for another network/,
    ],
    "no statement": [() => create(SignedHeadSchema, { statement: Buffer.from("no statement") }), /cannot be decoded/],
    "another block": [(about) => signedHead(authority, { ...about, hash: sha256(other!.header) })],
    "a block that is not there yet": [(about) => signedHead(authority, { ...about, number: 2n })],
    "the block before": [(_, ms) => statementAt(ms)],
    "a time to come": [(_, ms) => statementAt(ms + 90_000, block)],
    "a time before that of the block": [() => statementAt(1, block)],
    "an older time": [() => statementAt(oldMs - 1, block)],
  };
  let newestMs = oldMs;
  for (const [what, [make, refusal]] of Object.entries(bad)) {
    const timestampMs = newestMs + 500;
    given = make(
      { number: 1n, hash: sha256(block!.header), timestampMs: BigInt(timestampMs), genesisHash },
      timestampMs,
    );
    const before = asked;
    await until(() => asked >= before + 2, what);
    if (refusal !== undefined) {
      await until(async () => refusal.test((await peersOf(node))[0]!.verification.message ?? ""), what);
    }
    t.deepEqual([await saidMs(node), await passedOnMs()], [newestMs, newestMs], what);
    // The same peer is believed again as soon as it tells the truth, so what was wrong was looked at.
    newestMs += 1_000;
    given = statementAt(newestMs, block);
    await until(async () => (await saidMs(node)) === newestMs, what);
  }
  t.is((await askHead(node)).said!.proposer, authority.publicKey);
});

test("nothing is signed while the newest block is unknown, the clock is ahead, or a fork is this node's own", async (t) => {
  const dir = await temporaryDirectory(t);
  const [[block], [other]] = [await makeBlocks(t, authority, 1), await makeBlocks(t, authority, 1)];
  let behindMs = 0;
  let evidence: object[] = [];
  const peer = await startOddPeer(t, {
    ...{ key: stranger, genesisHash },
    status: () => ({ accepting: true, timeMs: BigInt(Date.now() - behindMs), evidence }),
  });
  const node = await startMemberOf(t, {
    ...{ key: authority, genesis, seeds: [silentPeer], dir, flags: { ...always, recover: false }, ...often(100) },
  });
  await hasAsked(node);
  t.is(await saidMs(node), 0);
  await createClient(ControlService, node.control).addPeer({ endpoint: peer.endpoint });
  await getsNewer(node);

  const isSilent = async (why: RegExp): Promise<void> => {
    await until(async () => why.test((await health(node)).subsystems.chain.lastError?.message ?? ""));
    // One may be on its way.
    await hasAsked(node);
    const before = await saidMs(node);
    await hasAsked(node);
    t.is(await saidMs(node), before);
  };
  behindMs = 3_600_000;
  await isSilent(/clock is 3[56]\d\d s ahead/);
  behindMs = 0;
  await getsNewer(node);

  evidence = [
    {
      ...{ header: block!.header, signature: block!.signature },
      ...{ otherHeader: other!.header, otherSignature: other!.signature },
    },
  ];
  await isSilent(/this node's own key, so it produces no blocks/);
});

/** What hears of statements about a block, at a time that the test sets. */
function openHeads(t: ExecutionContext) {
  const head: ChainHead = {
    ...{ number: 1n, hash: sha256("block 1"), timestampMs: 15_000n, genesisHash },
    ...{ header: new Uint8Array(), signature: new Uint8Array(), lowestBlock: 1n },
  };
  let [newer, now, isHidden] = [0, 100_000, false];
  const contradictions: string[] = [];
  const heads: HeadStatements = createHeadStatements({
    ...{ authorities: [authority.publicKey, follower.publicKey], network: genesisHash },
    head: () => (isHidden ? undefined : head),
    nowMs: () => now,
    minGapMs: 10_000,
    onNewer: () => newer++,
    onContradiction: ({ hash }) => contradictions.push(hash),
  });
  const said = (timeMs: number, hash = head.hash, key = authority): SignedHead =>
    signedHead(key, { number: 1n, hash, timestampMs: BigInt(timeMs), genesisHash });
  const has = (timeMs: number, count: number): void => {
    t.deepEqual([heads.latestMs(head.hash), newer], [timeMs, count]);
  };
  const at = (ms: number): void => {
    now = ms;
  };
  const hide = (): void => {
    isHidden = true;
  };
  return { heads, head, said, has, at, hide, contradictions };
}

test("a statement is passed on when it is newer by a while, whichever authority made it, and no further ahead than blocks are", (t) => {
  const { heads, head, said, has, at } = openHeads(t);
  heads.receive(said(14_999));
  has(0, 0);
  heads.receive(said(20_000));
  has(20_000, 1);
  heads.receive(said(29_999));
  has(20_000, 1);
  heads.receive(said(30_000, head.hash, follower));
  has(30_000, 2);
  heads.receive(said(160_001));
  has(30_000, 2);
  heads.receive(said(160_000));
  has(160_000, 3);
  t.is(heads.latestSignedHead(sha256("another block")), undefined);
  at(200_000);
  // Whoever makes the blocks says what he likes.
  heads.accept(said(160_000));
  has(160_000, 3);
  heads.accept(said(160_001));
  has(160_001, 4);
});

test("who sends many that nobody has asked for is looked at now and then, and others all the same", (t) => {
  const { heads, said, has } = openHeads(t);
  const forged = { ...said(50_000), signature: new Uint8Array(64) };
  for (let i = 0; i < 4; i++) {
    t.throws(() => heads.receive(forged, "many"), { message: /not signed/ });
  }
  t.notThrows(() => heads.receive(forged, "many"), "it is not looked at any more");
  heads.receive(said(50_000), "many");
  has(0, 0);
  heads.receive(said(50_000), "another");
  has(50_000, 1);
  // What is no news takes no look, whoever sends it.
  t.notThrows(() => heads.receive(forged, "another"));
  t.notThrows(() => heads.receive(forged));
});

test("a statement about another block in the place of the newest is told once", (t) => {
  const { heads, said, has, contradictions } = openHeads(t);
  const [one, two] = [sha256("one"), sha256("two")];
  t.throws(() => heads.receive({ ...said(20_000, one), signature: new Uint8Array(64) }), { message: /not signed/ });
  t.deepEqual(contradictions, []);
  heads.receive(said(20_000, one));
  heads.receive(said(20_000, one));
  heads.receive(said(20_000, two));
  t.deepEqual(contradictions, [one]);
  has(0, 0);
});

test("while a snapshot is taken in, no statement is taken, and the reason is said", (t) => {
  const { heads, said, at, hide } = openHeads(t);
  at(100_000);
  hide();
  t.throws(() => heads.accept(said(20_000)), { message: /it is syncing from a snapshot/ });
});
