/**
 * Lies that no change of a single field shows, and errors of nodes without a proof: a client package that verifies, and
 * a light node, with dishonest nodes.
 */
import { clone, fromBinary, type Message } from "@bufbuild/protobuf";
import test from "ava";
import {
  addCommitment,
  createGatehouse,
  createProgram,
  type Gatehouse,
  GatehouseError,
  keyFromSeed,
  ProofError,
  type ProofFlaw,
  type SignedTransaction,
  signTransaction,
} from "gatehouse-client";
import { readdir } from "node:fs/promises";
import { BlockHeaderSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { type GetBlockResponse, GetBlockResponseSchema } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { type GetMerkleProofResponse, GetMerkleProofResponseSchema } from "../../gen/gatehouse/zk/v1/zk_pb.js";
import { emptyNodes, fieldOrder, hashPair, toHex } from "../../src/zk/poseidon.js";
import { signHeader } from "../../tools/docs/vectors/state.js";
import { testKey } from "../helpers/chain/keys.js";
import { submission, testNetwork } from "../helpers/chain/transactions.js";
import { type AlteringNode, type Claim, startAlteringNode } from "../helpers/nodes/altering-node.js";
import { startTestLight } from "../helpers/nodes/start-light.js";
import { startMember, type TestNode } from "../helpers/nodes/start-node.js";
import { fileTeardown, type Teardown } from "../helpers/nodes/teardown.js";
import { ask, type PlainRequest } from "../helpers/wire/plain-client.js";

const element = (value: bigint | number): string => toHex(BigInt(value));
const missing = `stor-${"0".repeat(40)}`;
const file = fileTeardown();
let node: TestNode;
let altering: AlteringNode;
let notes: string;
let secretBlock: bigint;
let publicBlock: bigint;
let olderRoot: string;
let submitted: SignedTransaction;
/** Proof that the node has, by the commitment for which a dishonest node returns it. */
const proofs: Record<string, GetMerkleProofResponse> = {};
const alias = element(42n + fieldOrder);

test.before(async () => {
  node = await startMember(file);
  altering = await startAlteringNode(file, node.port);
  const signer = keyFromSeed(new Uint8Array(32).fill(1));
  const alice = createGatehouse(node.rpcUrl, { signer });
  file.teardown(() => alice.close());
  const included = async ({ hash }: { readonly hash: string }) => (await alice.waitFor(hash)).blockNumber;
  const { storageAddress, hash } = await alice.submit(createProgram({ name: "notes", access: "public", data: {} }));
  notes = storageAddress;
  publicBlock = await included({ hash });
  await included(await alice.submit(addCommitment(41n)));
  olderRoot = (await alice.zk.getMerkleRoot({})).rootHash;
  await alice.submit(addCommitment(42n));
  secretBlock = await included(await alice.submit(createProgram({ name: "secret", access: "owner" })));
  const content = { operation: createProgram({ name: "late" }), network: testNetwork, nonce: BigInt(Date.now()) + 1n };
  submitted = await signTransaction(signer, content);
  await included(await alice.submitSigned(submitted));
  proofs[alias] = await alice.zk.getMerkleProof({ commitment: element(42) });
  proofs[element(0)] = await alice.zk.getMerkleProof({ commitment: element(41), root: olderRoot });
});

/** Returns the URL of a node that changes its responses of one type. */
function urlOfLiar<M extends Message>(typeName: string, change: (response: M) => M): string {
  return altering.urlOf(({ response }) => (response.$typeName === typeName ? change(response as M) : undefined));
}

const ofBlock = (change: (response: GetBlockResponse) => void): string =>
  urlOfLiar<GetBlockResponse>(GetBlockResponseSchema.typeName, (response) => {
    const copy = clone(GetBlockResponseSchema, response);
    change(copy);
    return copy;
  });

const ofPath = (change: (response: GetMerkleProofResponse) => void): string =>
  urlOfLiar<GetMerkleProofResponse>(GetMerkleProofResponseSchema.typeName, (response) => {
    const copy = clone(GetMerkleProofResponseSchema, response);
    change(copy);
    return copy;
  });

function connect(t: Teardown, url: string): Gatehouse {
  const client = createGatehouse(url, { retry: false, verify: { genesisHash: testNetwork, hashPair, maxAgeS: 3_600 } });
  t.teardown(() => client.close());
  return client;
}

/** Starts a light node. */
async function start(t: Teardown, urls: readonly string[]) {
  const { light, dir, lines } = await startTestLight(t, urls);
  return { request: (path: string, post?: PlainRequest) => ask(light.port, path, post), dir, lines };
}

interface CombinedLie {
  readonly name: string;
  readonly url: () => string;
  readonly read: (client: Gatehouse) => Promise<unknown>;
  readonly path: () => string;
  readonly flaw: ProofFlaw;
}

const combinedLies: readonly CombinedLie[] = [
  {
    name: "the true hash of a withheld transaction, with content of the node",
    url: () =>
      ofBlock(({ block }) => {
        const withheld = block!.transactions.find(({ withheldHash }) => withheldHash !== undefined)!;
        Object.assign(withheld, submitted.transaction);
      }),
    read: ({ chain }) => chain.getBlock({ number: secretBlock }),
    path: () => `/chain/blocks/${secretBlock}`,
    flaw: "malformed",
  },
  {
    name: "the true hash of a withheld transaction, with a signature",
    url: () =>
      ofBlock(({ block }) => {
        const withheld = block!.transactions.find(({ withheldHash }) => withheldHash !== undefined)!;
        withheld.signature = submitted.transaction.signature!;
      }),
    read: ({ chain }) => chain.getBlock({ number: secretBlock }),
    path: () => `/chain/blocks/${secretBlock}`,
    flaw: "malformed",
  },
  {
    name: "the signature of another transaction of the sender",
    url: () => ofBlock(({ block }) => (block!.transactions[0]!.signature = submitted.transaction.signature!)),
    read: ({ chain }) => chain.getBlock({ number: publicBlock }),
    path: () => `/chain/blocks/${publicBlock}`,
    flaw: "signature",
  },
  {
    name: "a sibling in a commitment's path with the order of the field added, which has the same hash",
    url: () =>
      ofPath(({ proof }) => {
        const { hashes } = proof!.siblings[0]!;
        hashes[0] = element(BigInt(hashes[0]!) + fieldOrder);
      }),
    read: ({ zk }) => zk.getMerkleProof({ commitment: element(42) }),
    path: () => `/zk/merkle/proof/${element(42)}`,
    flaw: "path",
  },
  {
    name: "a commitment that is in the tree only without the order of the field",
    url: () => ofCommitment(alias, ({ proof }) => (proof!.leaf = alias)),
    read: ({ zk }) => zk.getMerkleProof({ commitment: alias }),
    path: () => `/zk/merkle/proof/${alias}`,
    flaw: "path",
  },
  {
    name: "the empty leaf as a commitment, below an older root",
    url: () =>
      ofCommitment(element(0), ({ proof }) => {
        proof!.siblings.forEach((sibling, level) => {
          sibling.hashes = [element(level === 0 ? 41n : emptyNodes()[level]!)];
          proof!.pathIndices[level] = level === 0 ? 1 : 0;
        });
        Object.assign(proof!, { leaf: element(0), leafIndex: 1 });
      }),
    read: ({ zk }) => zk.getMerkleProof({ commitment: element(0), root: olderRoot }),
    path: () => `/zk/merkle/proof/${element(0)}?root=${olderRoot}`,
    flaw: "path",
  },
];

/** Returns the URL of a node that has the proof of another commitment for this one. */
function ofCommitment(commitment: string, change: (response: GetMerkleProofResponse) => void): string {
  return ofPath((response) => {
    Object.assign(response, clone(GetMerkleProofResponseSchema, proofs[commitment]!), { commitment });
    change(response);
  });
}

for (const { name, url, read, path, flaw } of combinedLies) {
  test(`is rejected: ${name}`, async (t) => {
    const error = await t.throwsAsync(read(connect(t, url())), { instanceOf: ProofError });
    t.is(error.flaw, flaw, error.message);

    const honest = await (await start(t, [node.rpcUrl])).request(path());
    const { request, lines } = await start(t, [url(), node.rpcUrl]);
    const { status, text } = await request(path());
    t.deepEqual([status, text], [honest.status, honest.text]);
    t.regex(lines[0]!, /sent a false proof/);
    t.is(lines.length, 1);
  });
}

test("a second signed block with the number of the latest one is evidence of a fork", async (t) => {
  const liar = (): string =>
    ofBlock((response) => {
      const { $typeName: _, ...fields } = fromBinary(BlockHeaderSchema, response.block!.header);
      const { hash: _hash, ...signed } = signHeader(testKey(1), { ...fields, timestampMs: fields.timestampMs + 1n });
      Object.assign(response.block!, signed);
    });
  const client = connect(t, liar());
  const { number } = await client.chain.getHead({});
  for (const requested of [number, 2n ** 64n - 1n]) {
    const error = await t.throwsAsync(client.chain.getBlock({ number: requested }), { instanceOf: ProofError });
    t.is(error.flaw, "fork");
    t.is(error.evidence?.length, 2);
  }
  const { request, dir } = await start(t, [liar()]);
  t.regex((await request("/chain/blocks/latest")).text, /signed two blocks with the same number/);
  t.is((await readdir(dir)).filter((name) => name.startsWith("fork-")).length, 1);
});

test("a transaction is required, and no node can confirm another", async (t) => {
  const url = urlOfLiar("gatehouse.chain.v1.SubmitTransactionResponse", (response) =>
    Object.assign(response, { hash: element(5) }),
  );
  const client = connect(t, url);
  t.like(await t.throwsAsync(client.chain.submitTransaction({})), { reason: "INVALID_REQUEST", fromNode: false });
  t.like(await t.throwsAsync(client.submitSigned(submitted)), { reason: "UNPROVED" });
  const { request, lines } = await start(t, [url]);
  t.is((await request("/chain/transactions", { method: "POST", body: "{}" })).status, 400);
  t.deepEqual(lines, []);
});

const claims: readonly (Claim & { readonly light: number })[] = [
  { status: 403, code: "permission_denied", reason: "PERMISSION_DENIED", message: "You may not.", light: 403 },
  { status: 401, code: "unauthenticated", reason: "INVALID_SIGNATURE", message: "Wrong signature.", light: 401 },
  { status: 400, code: "out_of_range", reason: "PRUNED", message: "It is removed.", light: 410 },
  // A verified read decides these itself.
  { status: 400, code: "invalid_argument", reason: "INVALID_REQUEST", message: "No such form.", light: 501 },
];

for (const { light: lightStatus, ...claim } of claims) {
  test(`an unproved ${claim.reason} is marked as a statement of the node, and not held against it`, async (t) => {
    const url = altering.urlOf(({ method }) => (method.name === "GetGenesis" ? undefined : claim));
    const read = { storageAddress: notes };
    const error = await t.throwsAsync(connect(t, url).storage.getProgram(read), { instanceOf: GatehouseError });
    t.true(error.fromNode);
    t.is(error.reason, lightStatus === 501 ? "UNPROVED" : (claim.reason as typeof error.reason));

    const { request, lines } = await start(t, [url]);
    const rejected = [];
    for (const path of [`/storage-program/${notes}`, "/chain/blocks/1", "/chain/head", "/zk/merkle-root?block=1"]) {
      const { status, headers, text } = await request(path);
      t.is(status, lightStatus, path);
      t.is(headers["gatehouse-unproved"], "true", path);
      t.is((JSON.parse(text) as { error: string }).error, `A node responded without a proof: ${claim.message}`);
      rejected.push(path);
    }
    t.deepEqual(lines, []);

    // Another node proves the response.
    const both = await start(t, [url, node.rpcUrl]);
    const { status, headers } = await both.request(`/storage-program/${notes}`);
    t.deepEqual([status, headers["gatehouse-unproved"]], [200, undefined]);
    const isRefuted = claim.reason === "PERMISSION_DENIED" || claim.reason === "INVALID_REQUEST";
    t.is(both.lines.length, isRefuted ? 1 : 0);
    t.true(!isRefuted || both.lines[0]!.startsWith(`${url} failed`));
  });
}

test("errors that a proof or the request shows are not marked", async (t) => {
  const { request, lines } = await start(t, [node.rpcUrl]);
  const head = (await connect(t, node.rpcUrl).chain.getHead({})).number;
  for (const [status, path] of [
    [404, `/storage-program/${missing}`],
    [404, `/storage-program/${notes}/field/no`],
    [400, "/storage-program/stor-1"],
    [404, "/chain/blocks/0"],
    [404, `/chain/blocks/${head + 1n}`],
    [404, `/zk/merkle-root?block=${head + 1n}`],
  ] as const) {
    const response = await request(path);
    t.is(response.status, status, path);
    t.is(response.headers["gatehouse-unproved"], undefined, path);
  }
  t.deepEqual(lines, []);
  const error = await t.throwsAsync(connect(t, node.rpcUrl).chain.getBlock({ number: head + 1n }), {
    instanceOf: GatehouseError,
  });
  t.deepEqual([error.reason, error.fromNode], ["NOT_FOUND", false]);
});

test("a node cannot claim that a block does not exist", async (t) => {
  const claim = { status: 404, code: "not_found", reason: "NOT_FOUND", message: "There is no such block yet." };
  const url = altering.urlOf(({ method }) => (method.name === "GetBlock" ? claim : undefined));
  const error = await t.throwsAsync(connect(t, url).chain.getBlock({ number: 1n }), { instanceOf: ProofError });
  t.deepEqual([error.flaw, error.fromNode], ["unprovable", true]);
  const { request, lines } = await start(t, [url, node.rpcUrl]);
  t.is((await request("/chain/blocks/1")).status, 200);
  t.regex(lines.join(), /failed .* Another node proved the opposite/);
});

test("a rejected transaction is marked, and not held against a node if another accepts it", async (t) => {
  const claim = { status: 400, code: "invalid_argument", reason: "INVALID_REQUEST", message: "The nonce is used." };
  const url = altering.urlOf(({ method }) => (method.name === "SubmitTransaction" ? claim : undefined));
  const error = await t.throwsAsync(connect(t, url).submitSigned(submitted), { instanceOf: GatehouseError });
  t.deepEqual([error.reason, error.fromNode], ["INVALID_REQUEST", true]);
  const alone = await start(t, [url]);
  const post = submission(submitted.transaction as Parameters<typeof submission>[0]);
  const response = await alone.request("/chain/transactions", post);
  t.deepEqual([response.status, response.headers["gatehouse-unproved"]], [400, "true"]);
  const { request, lines } = await start(t, [url, node.rpcUrl]);
  t.is((await request("/chain/transactions", post)).status, 200);
  t.deepEqual(lines, []);
});
