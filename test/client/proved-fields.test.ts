/**
 * Every field of every verified response. The table says for each field what proves it. A dishonest node changes each
 * field of each response in turn, and the reader must reject the response or return that of an honest node.
 */
import { type DescField, type DescMessage, type DescMethod, equals, type Message, toBinary } from "@bufbuild/protobuf";
import { reflect, type ReflectMessage } from "@bufbuild/protobuf/reflect";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import test from "ava";
import {
  addCommitment,
  createGatehouse,
  createProgram,
  deleteProgram,
  type Gatehouse,
  GatehouseError,
  keyFromSeed,
  ProofError,
  signTransaction,
  spendNullifier,
} from "gatehouse-client";
import { readdir, readFile } from "node:fs/promises";
import { ChainService, ConsensusService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";
import { StateService } from "../../gen/gatehouse/state/v1/state_pb.js";
import { StorageService } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { ZkService } from "../../gen/gatehouse/zk/v1/zk_pb.js";
import { provedReads } from "../../client/src/proof/reads.js";
import { hashPair } from "../../src/zk/poseidon.js";
import { signedHead } from "../helpers/chain/heads.js";
import { genesisOf, testKey } from "../helpers/chain/keys.js";
import { submission, testNetwork } from "../helpers/chain/transactions.js";
import {
  type AlteringNode,
  alterationsOf,
  encodedMessages,
  type Exchange,
  startAlteringNode,
} from "../helpers/nodes/altering-node.js";
import { startTestLight } from "../helpers/nodes/start-light.js";
import { startMember, type TestNode } from "../helpers/nodes/start-node.js";
import { fileTeardown, type Teardown } from "../helpers/nodes/teardown.js";
import { ask, type PlainRequest } from "../helpers/wire/plain-client.js";

/**
 * Treatment of a field of a response that a node sends:
 *
 * - rejected: a changed value fails a check.
 * - ignored: the reader computes the value, or reads it from another field.
 * - parts: a message, whose fields have rows.
 * - unasked: no verified read requests this message from a node. The value comes from elsewhere.
 * - stripped: as unasked, and the value is left out.
 */
type Row = readonly [treatment: "rejected" | "ignored" | "parts" | "unasked" | "stripped", by: string];

/** Rows of a message by field; `*` for all fields of a message that is hashed or signed as bytes. */
const table: Readonly<Record<string, Readonly<Record<string, Row>>>> = {
  "state.v1.GetProofResponse": {
    header: ["rejected", "the signature of an authority: checkHeader()"],
    signature: ["rejected", "checkHeader()"],
    head: ["parts", "checkSignedHead()"],
    program: ["parts", "checkProgram()"],
    nullifiers: ["parts", "checkNullifier(), for each in the request"],
    senders: ["parts", "checkSender(), for each in the request"],
    commitments: ["parts", "checkCommitments()"],
  },
  "state.v1.Path": {
    siblings: ["rejected", "the state root: checkPath()"],
    other: ["parts", "the state root: checkPath()"],
  },
  "state.v1.Leaf": {
    key: ["rejected", "the state root: checkPath()"],
    value_hash: ["rejected", "the state root: checkPath()"],
  },
  "state.v1.ProgramProof": {
    storage_address: ["rejected", "the request: checkProgram()"],
    path: ["parts", "checkPath()"],
    program: ["parts", "the hash of the leaf: checkProgram()"],
    value_hash: ["rejected", "the hash of the leaf: checkProgram()"],
  },
  "state.v1.ProgramState": {
    blinding: ["rejected", "the hash of the leaf"],
    record: ["rejected", "the hash of the leaf"],
    metadata_hash: ["rejected", "the hash of the leaf"],
    metadata: ["rejected", "metadata_hash: readMetadata()"],
    text_hash: ["rejected", "the hash of the leaf"],
    object: ["parts", "the hash of the leaf: hashOfObject()"],
    data: ["rejected", "text_hash, or the parts of the object: isDocument()"],
  },
  "state.v1.ProgramRecord": { "*": ["rejected", "ProgramState.record, as bytes"] },
  "state.v1.RecordGroup": { "*": ["rejected", "ProgramState.record, as bytes"] },
  "storage.v1.AccessGroup": { "*": ["rejected", "ProgramState.record, as bytes"] },
  "state.v1.ObjectState": {
    fields_root: ["rejected", "the hash of the leaf: hashOfObject()"],
    last_key: ["rejected", "the hash of the leaf: hashOfObject()"],
    tail_hash: ["rejected", "the hash of the leaf: hashOfObject()"],
    fields: ["parts", "readFields(), for each in the request"],
  },
  "state.v1.FieldProof": {
    name: ["rejected", "the request: readField()"],
    path: ["parts", "checkPath()"],
    field: ["parts", "fields_root: readField()"],
  },
  "state.v1.FieldState": {
    value: ["rejected", "fields_root: readField()"],
    before: ["rejected", "fields_root: readField()"],
    previous_key: ["rejected", "fields_root: readField()"],
  },
  "state.v1.NullifierProof": {
    nullifier_hash: ["rejected", "the request: checkNullifier()"],
    path: ["parts", "checkPath()"],
    block_number: ["rejected", "the hash of the leaf: checkNullifier()"],
    transaction_hash: ["rejected", "the hash of the leaf: checkNullifier()"],
  },
  "state.v1.SenderProof": {
    address: ["rejected", "the request: checkSender()"],
    path: ["parts", "checkPath()"],
    nonce: ["rejected", "the hash of the leaf: checkSender()"],
    value_hash: ["rejected", "the hash of the leaf: checkSender()"],
  },
  "state.v1.CommitmentsProof": {
    path: ["parts", "checkPath()"],
    tree: ["parts", "the hash of the leaf: checkCommitments()"],
    value_hash: ["rejected", "the hash of the leaf: checkCommitments()"],
  },
  "state.v1.CommitmentsState": {
    root: ["rejected", "the hash of the leaf: checkCommitments()"],
    leaf_count: ["rejected", "the hash of the leaf: checkCommitments()"],
  },
  "chain.v1.SignedHead": {
    statement: ["rejected", "the signature of an authority: checkSignedHead()"],
    signature: ["rejected", "checkSignedHead()"],
  },
  "chain.v1.HeadStatement": { "*": ["rejected", "SignedHead.statement, as bytes"] },

  "chain.v1.GetBlockResponse": {
    hash: ["ignored", "the hash of the header: checkHeader()"],
    header: ["ignored", "decoded from Block.header: readHeader()"],
    transaction_hashes: ["ignored", "hashes of the bodies: hashOfTransaction()"],
    block: ["parts", "checkContent()"],
  },
  "chain.v1.Block": {
    header: ["rejected", "the signature of an authority: checkHeader()"],
    signature: ["rejected", "checkHeader()"],
    transactions: ["parts", "transactions_hash in the header: checkContent()"],
  },
  "chain.v1.Transaction": {
    body: ["rejected", "transactions_hash in the header: checkContent()"],
    signature: ["rejected", "the sender's key: checkSender(); unset next to withheld_hash: hashOfTransaction()"],
    withheld_hash: ["rejected", "transactions_hash in the header: checkContent()"],
  },
  "chain.v1.BlockHeader": { "*": ["rejected", "the signature of an authority over Block.header, as bytes"] },
  "chain.v1.TransactionBody": { "*": ["rejected", "Transaction.body, as bytes"] },
  ...Object.fromEntries(
    [
      ...["StorageOperation", "CreateProgram", "WriteProgram", "SetField", "SetItem", "AppendItem", "DeleteField"],
      ...["DeleteItem", "UpdateAccess", "DeleteProgram", "ProgramData", "AccessControl"],
    ].map((name) => [`storage.v1.${name}`, { "*": ["rejected", "Transaction.body, as bytes"] as const }]),
  ),
  ...Object.fromEntries(
    ["ZkOperation", "AddCommitment", "SpendNullifier", "Groth16Proof"].map((name) => [
      `zk.v1.${name}`,
      { "*": ["rejected", "Transaction.body, as bytes"] as const },
    ]),
  ),
  "chain.v1.GetTransactionResponse": {
    hash: ["ignored", "the request"],
    status: ["rejected", "the block includes the transaction: requestBlock()"],
    block_number: ["rejected", "the block includes the transaction: requestBlock()"],
    reason: ["ignored", "left out: no proof shows a rejection"],
    body: ["ignored", "Transaction.body in the block"],
  },
  "chain.v1.SubmitTransactionResponse": { hash: ["rejected", "the hash of the transaction's body: hashOf()"] },
  "info.v1.GetGenesisResponse": { genesis: ["rejected", "the pinned hash: readProofNetwork()"] },
  "zk.v1.GetMerkleRootResponse": {
    root_hash: ["rejected", "the hash of the commitment tree: rootOf()"],
    block_number: ["rejected", "commitment_root in the header of the block: checkCreator()"],
    leaf_count: ["rejected", "the hash of the commitment tree: rootOf()"],
  },
  "zk.v1.GetMerkleProofResponse": {
    commitment: ["ignored", "the request"],
    proof: ["parts", "the proved root: rootOfProof()"],
    block_number: ["rejected", "commitment_root in the header of the block: checkCreator()"],
  },
  "zk.v1.MerkleProof": {
    siblings: ["parts", "the proved root: rootOfProof()"],
    path_indices: ["rejected", "leaf_index: rootOfProof()"],
    root: ["rejected", "the request, or the proved root"],
    leaf: ["rejected", "the request"],
    leaf_index: ["rejected", "path_indices: rootOfProof()"],
  },
  "zk.v1.Siblings": { hashes: ["rejected", "the proved root: rootOfProof()"] },

  "chain.v1.GetHeadResponse": {
    number: ["unasked", "the header of the proof"],
    hash: ["unasked", "the hash of the header of the proof"],
    timestamp_ms: ["unasked", "the header of the proof"],
    genesis_hash: ["unasked", "the pinned hash"],
    header: ["unasked", "GetProofResponse.header"],
    signature: ["unasked", "GetProofResponse.signature"],
    head: ["stripped", "checked by each proof, for its age"],
    lowest_block: ["stripped", "a statement of the node about itself"],
  },
  "chain.v1.GetSenderResponse": {
    address: ["unasked", "the request"],
    nonce: ["unasked", "SenderProof.nonce"],
  },
  "zk.v1.GetNullifierResponse": {
    used: ["unasked", "NullifierProof, with or without a use"],
    nullifier_hash: ["unasked", "the request"],
    block_number: ["unasked", "NullifierProof.block_number"],
    transaction_hash: ["unasked", "NullifierProof.transaction_hash"],
  },
  "storage.v1.GetProgramResponse": {
    success: ["unasked", "constant"],
    storage_address: ["unasked", "the request"],
    owner: ["unasked", "ProgramRecord.owner"],
    program_name: ["unasked", "ProgramRecord.program_name"],
    encoding: ["unasked", "ProgramRecord.encoding"],
    data: ["unasked", "ProgramState.data"],
    metadata: ["unasked", "ProgramState.metadata"],
    acl: ["unasked", "ProgramRecord"],
    storage_location: ["unasked", "constant"],
    size_bytes: ["unasked", "ProgramRecord.size_bytes"],
    created_at: ["unasked", "ProgramRecord.created_ms"],
    updated_at: ["unasked", "ProgramRecord.updated_ms"],
  },
  "storage.v1.GetProgramDataResponse": {
    success: ["unasked", "constant"],
    storage_address: ["unasked", "the request"],
    data: ["unasked", "ProgramState.data"],
  },
  "storage.v1.ListFieldsResponse": {
    success: ["unasked", "constant"],
    storage_address: ["unasked", "the request"],
    fields: ["unasked", "ProgramState.data"],
  },
  "storage.v1.GetFieldResponse": {
    success: ["unasked", "constant"],
    storage_address: ["unasked", "the request"],
    field: ["unasked", "the request"],
    value: ["unasked", "FieldState.value"],
    type: ["unasked", "FieldState.value"],
  },
  "storage.v1.GetFieldItemResponse": {
    success: ["unasked", "constant"],
    storage_address: ["unasked", "the request"],
    field: ["unasked", "the request"],
    index: ["unasked", "the request, and FieldState.value"],
    value: ["unasked", "FieldState.value"],
    array_length: ["unasked", "FieldState.value"],
  },
  "storage.v1.HasFieldResponse": {
    success: ["unasked", "constant"],
    storage_address: ["unasked", "the request"],
    field: ["unasked", "the request"],
    exists: ["unasked", "FieldProof, with or without a field"],
  },
  "storage.v1.GetFieldTypeResponse": {
    success: ["unasked", "constant"],
    storage_address: ["unasked", "the request"],
    field: ["unasked", "the request"],
    type: ["unasked", "FieldState.value"],
  },
};

/** Returns the row of a field; undefined if the table has none. */
function rowOf(message: string, field: string): Row | undefined {
  const rows = table[message.replace(/^gatehouse\./, "")];
  return rows?.["*"] ?? rows?.[field];
}

/** Responses that verified reads return, and those that they request. */
const roots: readonly DescMessage[] = [
  ...provedReads.map(({ method }) => method.output),
  StateService.method.getProof.output,
];

/** Yields every message that is reachable from some. */
function* reachable(from: readonly DescMessage[], seen = new Set<DescMessage>()): Generator<DescMessage> {
  for (const desc of from) {
    if (!seen.has(desc) && desc.typeName.startsWith("gatehouse.")) {
      seen.add(desc);
      yield desc;
      yield* reachable(
        desc.fields.flatMap((field) => messageIn(desc, field) ?? []),
        seen,
      );
    }
  }
}

function messageIn(desc: DescMessage, field: DescField): DescMessage | undefined {
  return field.message ?? encodedMessages[`${desc.typeName}.${field.name}`];
}

test("every field of every verified response has a row, and every row a field", async (t) => {
  const used = new Set<string>();
  for (const { typeName, fields } of reachable(roots)) {
    used.add(typeName.replace(/^gatehouse\./, ""));
    for (const { name } of fields) {
      t.not(rowOf(typeName, name), undefined, `${typeName}.${name} has no row: say what proves it.`);
    }
    const names = new Set(["*", ...fields.map(({ name }) => name)]);
    for (const name of Object.keys(table[typeName.replace(/^gatehouse\./, "")] ?? {})) {
      t.true(names.has(name), `${typeName} has no field ${name}.`);
    }
  }
  t.deepEqual(
    Object.keys(table).filter((name) => !used.has(name)),
    [],
  );
  const files = await readdir("client/src/proof");
  const code = (await Promise.all(files.map((name) => readFile(`client/src/proof/${name}`, "utf8")))).join("\n");
  for (const [, by] of Object.values(table).flatMap((rows) => Object.values(rows))) {
    for (const [, name] of by.matchAll(/(\w+)\(\)/g)) {
      t.true(code.includes(`function ${name}(`), `The function ${name} is not in client/src/proof.`);
    }
  }
});

/** Read, in the client package and at a light node. */
interface Read {
  readonly method: DescMethod;
  readonly request: object;
  readonly path: string;
  readonly post?: PlainRequest;
}

const element = (value: number): string => `0x${value.toString(16).padStart(64, "0")}`;
const seed = new Uint8Array(32).fill(1);
const file = fileTeardown();
let node: TestNode;
let altering: AlteringNode;
let plain: Gatehouse;
let reads: readonly Read[];

test.before(async () => {
  node = await startMember(file);
  altering = await startAlteringNode(file, node.port);
  const alice = createGatehouse(node.rpcUrl, { signer: keyFromSeed(seed) });
  plain = createGatehouse(node.rpcUrl);
  file.teardown(() => Promise.all([alice.close(), plain.close()]));
  const groups = { g: { members: [testKey(8).publicKey], permissions: ["read" as const] } };
  const access = { mode: "public" as const, blacklisted: [testKey(9).publicKey], groups };
  const data = { title: "Hello", tags: ["one", 2] };
  const { storageAddress: notes } = await alice.submit(
    createProgram({ name: "notes", access, data, metadata: { v: 1 } }),
  );
  const { storageAddress: text } = await alice.submit(createProgram({ name: "text", access: "public", data: "plain" }));
  const { storageAddress: gone } = await alice.submit(createProgram({ name: "gone", access: "public", data }));
  const first = await alice.submit(addCommitment(41n));
  await alice.waitFor(first.hash);
  const secret = await alice.submit(createProgram({ name: "secret", access: "owner", data }));
  const { blockNumber: secretBlock } = await alice.waitFor(secret.hash);
  await alice.submit(deleteProgram(gone));
  await alice.submit(spendNullifier({ nullifierHash: element(7) }));
  const last = await alice.submit(addCommitment(42n));
  const { blockNumber: lastBlock } = await alice.waitFor(last.hash);
  // A block without commitments, whose root an earlier block created.
  const key = keyFromSeed(seed);
  const content = { operation: createProgram({ name: "late" }), network: testNetwork, nonce: BigInt(Date.now()) + 1n };
  const late = await signTransaction(key, content);
  const { transaction } = late;
  await plain.waitFor((await plain.submitSigned(late)).hash);
  const { number, hash } = await plain.chain.getHead({});
  const { rootHash: olderRoot } = await plain.zk.getMerkleRoot({ block: lastBlock - 1n });
  await createClient(ConsensusService, node.control).reportHead({
    head: signedHead(testKey(1), { number, hash, timestampMs: BigInt(Date.now()), genesisHash: testNetwork }),
  });
  const { method: chain } = ChainService;
  const { method: storage } = StorageService;
  const { method: zk } = ZkService;
  const missing = `stor-${"0".repeat(40)}`;
  const sender = alice.publicKey!;
  reads = [
    { method: chain.getHead, request: {}, path: "/chain/head" },
    { method: chain.getBlock, request: { number: 1n }, path: "/chain/blocks/1" },
    { method: chain.getBlock, request: { number: secretBlock }, path: `/chain/blocks/${secretBlock}` },
    {
      method: chain.getTransaction,
      request: { hash: first.hash, withBody: true },
      path: `/chain/transactions/${first.hash}?withBody=true`,
    },
    { method: chain.getSender, request: { address: sender }, path: `/chain/senders/${sender}` },
    { method: chain.getSender, request: { address: element(1) }, path: `/chain/senders/${element(1)}` },
    {
      method: chain.submitTransaction,
      request: { transaction },
      path: "/chain/transactions",
      post: submission(transaction),
    },
    { method: InfoService.method.getGenesis, request: {}, path: "/genesis" },
    ...[missing, gone, notes].map((storageAddress) => ({
      method: storage.getProgram,
      request: { storageAddress },
      path: `/storage-program/${storageAddress}`,
    })),
    ...[notes, text].map((storageAddress) => ({
      method: storage.getProgramData,
      request: { storageAddress },
      path: `/storage-program/${storageAddress}/all`,
    })),
    { method: storage.listFields, request: { storageAddress: notes }, path: `/storage-program/${notes}/fields` },
    ...["no", "title"].flatMap((field) =>
      (["getField", "hasField", "getFieldType"] as const).map((name) => ({
        method: storage[name],
        request: { storageAddress: notes, field },
        path: `/storage-program/${notes}/${{ getField: "field", hasField: "has", getFieldType: "type" }[name]}/${field}`,
      })),
    ),
    {
      method: storage.getFieldItem,
      request: { storageAddress: notes, field: "tags", index: 1, withLength: true },
      path: `/storage-program/${notes}/field/tags/item/1?withLength=true`,
    },
    ...[7, 8].map((nullifier) => ({
      method: zk.getNullifier,
      request: { nullifierHash: element(nullifier) },
      path: `/zk/nullifier/${element(nullifier)}`,
    })),
    { method: zk.getMerkleRoot, request: {}, path: "/zk/merkle-root" },
    {
      method: zk.getMerkleRoot,
      request: { block: lastBlock - 1n },
      path: `/zk/merkle-root?block=${lastBlock - 1n}`,
    },
    { method: zk.getMerkleProof, request: { commitment: element(42) }, path: `/zk/merkle/proof/${element(42)}` },
    {
      method: zk.getMerkleProof,
      request: { commitment: element(41), root: olderRoot },
      path: `/zk/merkle/proof/${element(41)}?root=${olderRoot}`,
    },
  ];
});

type Outcome = { readonly response: Message } | { readonly error: GatehouseError };

/** Calls a client. */
async function call(client: Gatehouse, { method, request }: Read): Promise<Outcome> {
  const service = { ...client }[method.parent.name.replace("Service", "").toLowerCase() as "storage"];
  try {
    return {
      response: await (service as never as Record<string, (request: object) => Promise<Message>>)[method.localName]!(
        request,
      ),
    };
  } catch (error) {
    if (error instanceof GatehouseError) {
      return { error };
    }
    throw error;
  }
}

/** Text that is the same for equal outcomes, with unknown fields. */
function show(read: Read, outcome: Outcome): string {
  if ("error" in outcome) {
    const { reason, message, fromNode } = outcome.error;
    return JSON.stringify({ reason, message, fromNode });
  }
  return Buffer.from(toBinary(read.method.output, outcome.response)).toString("hex");
}

const isRejected = (outcome: Outcome): boolean => "error" in outcome && outcome.error instanceof ProofError;

type Format = "binary" | "json";

/** Reads once with a new client, which has the genesis unless the read is about the genesis. */
async function readFrom(url: string, read: Read, format: Format): Promise<Outcome> {
  const isGenesis = read.method === (InfoService.method.getGenesis as DescMethod);
  const network = isGenesis ? { genesisHash: testNetwork } : { genesis: genesisOf(testKey(1)) };
  const transport = createConnectTransport({ baseUrl: url, httpVersion: "1.1", useBinaryFormat: format === "binary" });
  const client = createGatehouse(url, { transport, retry: false, verify: { ...network, hashPair, maxAgeS: 3_600 } });
  try {
    return await call(client, read);
  } finally {
    await client.close();
  }
}

/** A read with one changed field in a response of the node. */
interface Lie {
  readonly read: Read;
  /** Rpc, field with its location, and kind of the change. */
  readonly change: string;
  /** The same, with the path of the read. */
  readonly name: string;
  readonly message: string;
  readonly field: string;
  readonly url: string;
  readonly honest: Outcome;
}

/** Creates every lie about the reads, each change in at most this number of reads. */
async function createLies(format: Format, maxReads: number): Promise<Lie[]> {
  const lies: Lie[] = [];
  const counts = new Map<string, number>();
  for (const read of reads) {
    const exchanges: Exchange[] = [];
    const honest = await readFrom(altering.record(exchanges), read, format);
    for (const { method, key, response } of exchanges) {
      for (const { message, field, kind, path, altered } of alterationsOf(method.output, response)) {
        const change = `${method.name}${path}: ${kind}`;
        const count = counts.get(change) ?? 0;
        // JSON is parsed without unknown fields.
        if (count < maxReads && (format === "binary" || kind !== "unknown field")) {
          counts.set(change, count + 1);
          const url = altering.urlOf((found) => (found.key === key ? altered : undefined));
          lies.push({ read, change, name: `${read.path} ${change}`, message, field, url, honest });
        }
      }
    }
  }
  return lies;
}

test("verified responses have all fields of the node's, except those that are stripped", async (t) => {
  const url = altering.record([]);
  for (const read of reads) {
    const [verified, original] = await Promise.all([readFrom(url, read, "binary"), call(plain, read)]);
    if ("error" in verified || "error" in original) {
      t.true("error" in verified && "error" in original && !verified.error.fromNode, read.path);
      continue;
    }
    strip(reflect(read.method.output, original.response));
    t.true(equals(read.method.output, verified.response, original.response), read.path);
  }
});

/** Clears the fields that verified responses leave out. */
function strip(message: ReflectMessage): void {
  for (const field of message.desc.fields) {
    if (rowOf(message.desc.typeName, field.name)?.[0] === "stripped") {
      message.clear(field);
    }
  }
}

/** Number of reads in which each field at each location is changed. */
const maxReads = { binary: 2, json: 1 };
const tried = new Map<Format, Promise<readonly Tried[]>>();

/** A lie, and what the reader made of it. */
interface Tried {
  readonly lie: Lie;
  readonly outcome: Outcome;
}

/** Reads every lie, once for all tests. */
function tryLies(format: Format): Promise<readonly Tried[]> {
  const all = tried.get(format) ?? tryAll(format);
  tried.set(format, all);
  return all;
}

async function tryAll(format: Format): Promise<readonly Tried[]> {
  const lies = await createLies(format, maxReads[format]);
  const outcomes: Tried[] = [];
  for (let i = 0; i < lies.length; i += 8) {
    const some = lies.slice(i, i + 8);
    outcomes.push(
      ...(await Promise.all(some.map(async (lie) => ({ lie, outcome: await readFrom(lie.url, lie.read, format) })))),
    );
  }
  return outcomes;
}

for (const format of ["binary", "json"] as const) {
  test(`the client package rejects each changed field, or returns the honest response, over ${format}`, async (t) => {
    const all = await tryLies(format);
    for (const { lie, outcome } of all) {
      if (!isRejected(outcome)) {
        t.is(show(lie.read, outcome), show(lie.read, lie.honest), lie.name);
      }
    }
    t.log(`${all.length} changed responses, ${all.filter(({ outcome }) => isRejected(outcome)).length} rejected`);
    t.true(all.length > 200);
  });
}

test("each row of the table says what becomes of a changed field", async (t) => {
  const found = new Map<string, Set<string>>();
  for (const { lie, outcome } of await tryLies("binary")) {
    for (const row of [`${lie.message}.${lie.field}`, `${lie.message}.*`]) {
      found.set(row, (found.get(row) ?? new Set()).add(isRejected(outcome) ? "rejected" : "ignored"));
    }
  }
  const encoded = new Set(Object.values(encodedMessages).map(({ typeName }) => typeName));
  for (const { typeName, fields } of reachable(roots)) {
    const isHashed = table[typeName.replace(/^gatehouse\./, "")]!["*"] !== undefined;
    for (const { name } of fields) {
      const [treatment, by] = rowOf(typeName, name)!;
      const results = found.get(`${typeName}.${isHashed ? "*" : name}`);
      const row = `${typeName}.${name}: ${treatment}, ${by}`;
      if (treatment === "unasked" || treatment === "stripped") {
        t.is(results, undefined, row);
      } else if (treatment === "ignored") {
        t.deepEqual(results, new Set(["ignored"]), row);
      } else if (treatment === "parts") {
        t.not(results, undefined, row);
      } else if (!isHashed || encoded.has(typeName)) {
        t.true(results?.has("rejected"), row);
      }
    }
  }
});

test("a light node rejects each changed field and queries the next node, or returns the honest response", async (t) => {
  // Each field at each location, in one read.
  const unique = new Map<string, Tried>();
  for (const one of await tryLies("binary")) {
    unique.set(one.lie.change, unique.get(one.lie.change) ?? one);
  }
  for (const read of reads) {
    const ofRead = [...unique.values()].filter(({ lie }) => lie.read === read);
    const honest = await askLight(t, [node.rpcUrl], read);
    t.regex(honest.response, /^(200|404) /, read.path);
    const rejected = ofRead.flatMap(({ lie, outcome }) => (isRejected(outcome) ? [lie.url] : []));
    const { response, lines } = await askLight(t, [...rejected, node.rpcUrl], read);
    t.is(response, honest.response, read.path);
    for (const line of lines) {
      t.true(
        rejected.some((url) => line.startsWith(`${url} `)),
        line,
      );
    }
    for (const { lie, outcome } of ofRead) {
      if (!isRejected(outcome)) {
        t.deepEqual(await askLight(t, [lie.url], read), honest, lie.name);
      }
    }
  }
  t.true(unique.size > 200);
});

/** Reads once from a new light node. Returns its response, and its log. */
async function askLight(t: Teardown, urls: readonly string[], { path, post }: Read) {
  const { light, lines } = await startTestLight(t, urls);
  const { status, text } = await ask(light.port, path, post);
  await light.stop();
  return { response: `${status} ${text}`, lines };
}
