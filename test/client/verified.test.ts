/**
 * A client that verifies proofs, with honest and dishonest nodes. Its responses and errors equal those that the node
 * sends to other clients.
 */
import type { DescMessage, DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, createRouterTransport, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import test from "ava";
import {
  addCommitment,
  answerProved,
  createGatehouse,
  createProgram,
  deleteProgram,
  type Gatehouse,
  type GatehouseError,
  type GatehouseOptions,
  isProvable,
  jsonText,
  keyFromSeed,
  type NewProgram,
  ProofError,
  type SignedHeader,
  spendNullifier,
  type VerifyOptions,
} from "gatehouse-client";
import { AttestationService } from "../../gen/gatehouse/attestation/v1/attestation_pb.js";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { HealthService } from "../../gen/gatehouse/health/v1/health_pb.js";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";
import { type GetProofRequest, type GetProofResponse, StateService } from "../../gen/gatehouse/state/v1/state_pb.js";
import { StorageService } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { ZkService } from "../../gen/gatehouse/zk/v1/zk_pb.js";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { createProver, signHead, signHeader } from "../../tools/docs/vectors/state.js";
import { emptyNodes, hashPair, toHex } from "../../src/zk/poseidon.js";
import { emptyCommitmentRoot } from "../../client/src/proof/zk-reads.js";
import { testKey } from "../helpers/chain/keys.js";
import { startMember, type TestNode } from "../helpers/nodes/start-node.js";
import { fileTeardown, type Teardown } from "../helpers/nodes/teardown.js";
import { testNetwork } from "../helpers/chain/transactions.js";

const element = (value: number): string => `0x${value.toString(16).padStart(64, "0")}`;
const seed = new Uint8Array(32).fill(1);
const missing = `stor-${"0".repeat(40)}`;

const documents: Readonly<Record<string, NewProgram>> = {
  notes: {
    name: "notes",
    data: jsonText(' {"title": "Hello", "tags": [1.0, "two", {"a": null}], "none": [], "": null, "o": {"x": 1e3}} '),
    metadata: { version: "1.0" },
    access: {
      mode: "public",
      blacklisted: [testKey(9).publicKey],
      groups: {
        b: { members: [testKey(8).publicKey], permissions: ["write"] },
        a: { members: [], permissions: ["read"] },
      },
    },
  },
  list: { name: "list", data: [1, 2], access: "public" },
  text: { name: "text", data: "plain", access: "public" },
  bytes: { name: "bytes", data: Uint8Array.of(1, 2, 3), access: "public" },
  empty: { name: "empty", access: "public" },
  gone: { name: "gone", data: { a: 1 }, access: "public" },
};

let member: TestNode;
let plain: Gatehouse;
/** Addresses of {@link documents}. */
let addresses: Readonly<Record<string, string>>;
/** A prover with an empty state. */
const prover = createProver({});
let head: { readonly number: bigint; readonly timestampMs: bigint };
const file = fileTeardown();

test.before(async () => {
  member = await startMember(file);
  plain = createGatehouse(member.rpcUrl, { signer: keyFromSeed(seed) });
  file.teardown(() => plain.close());
  const created: Record<string, string> = {};
  for (const [name, content] of Object.entries(documents)) {
    const { storageAddress, hash } = await plain.submit(createProgram(content));
    created[name] = storageAddress;
    // Block 1 contains a public program, and no commitment.
    await plain.waitFor(hash);
  }
  addresses = created;
  await plain.submit(deleteProgram(created["gone"]!));
  await plain.submit(addCommitment(42n));
  const spent = await plain.submit(spendNullifier({ nullifierHash: element(7) }));
  await plain.waitFor(spent.hash);
  // A block that adds no commitments.
  const later = await plain.submit(createProgram({ name: "later" }));
  await plain.waitFor(later.hash);
  head = await plain.chain.getHead({});
});

/** A header of the authority for the state of {@link prover}, and a signed head for it. */
function signState(fields: { readonly number?: bigint; readonly timestampMs?: bigint } = {}) {
  const { number = head.number, timestampMs: signedAtMs = BigInt(Date.now()) } = fields;
  const common = { number, genesisHash: testNetwork };
  const { hash, ...signed } = signHeader(testKey(1), {
    ...common,
    timestampMs: fields.timestampMs ?? head.timestampMs,
    stateRoot: prover.root,
  });
  return { ...signed, head: signHead(testKey(1), { ...common, timestampMs: signedAtMs, hash }) };
}

/** A transport to the node with another proof service. */
function withProofs(prove: (request: GetProofRequest) => GetProofResponse | Promise<GetProofResponse>): Transport {
  const node = createConnectTransport({ baseUrl: member.rpcUrl, httpVersion: "1.1" });
  const state = createRouterTransport(({ service }) => {
    service(StateService, { getProof: (request) => prove(request) });
  });
  return {
    unary: (method, ...rest) =>
      (method.parent.typeName === StateService.typeName ? state : node).unary(method, ...rest),
    stream: (...args) => node.stream(...args),
  };
}

/** A transport to the node that changes the responses of a method. */
function lying(method: string, change: object): Transport {
  const transport = createConnectTransport({ baseUrl: member.rpcUrl, httpVersion: "1.1" });
  return {
    ...transport,
    async unary(called, ...rest) {
      const response = await transport.unary(called, ...rest);
      Object.assign(response.message, called.name === method && change);
      return response;
    },
  };
}

/** Creates a verifying client of the node, optionally with another proof service. */
function connect(t: Teardown, { prove, ...verify }: VerifyOptions & { prove?: Parameters<typeof withProofs>[0] } = {}) {
  return connectWith(t, { ...(prove && { transport: withProofs(prove) }), retry: false }, verify);
}

function connectWith(t: Teardown, options: GatehouseOptions, verify: VerifyOptions = {}) {
  const node = createGatehouse(member.rpcUrl, { verify: { genesisHash: testNetwork, ...verify }, ...options });
  t.teardown(() => node.close());
  return node;
}

/** Returns the response, or the visible parts of the error. */
async function outcomeOf(call: Promise<unknown>): Promise<unknown> {
  try {
    return await call;
  } catch (error) {
    const { reason, message, code } = error as GatehouseError;
    // A node only says that the caller finds nothing; a proof shows that nothing exists.
    return { reason, message: message.replace(/at this address that .*$/, "at this address."), code };
  }
}

test("verified responses equal those of the node, for existing and for missing data", async (t) => {
  const node = connect(t, { hashPair });
  const calls: ((client: Gatehouse) => Promise<unknown>)[] = [];
  for (const storageAddress of [...Object.values(addresses), missing, "stor-1"]) {
    const request = { storageAddress };
    calls.push(
      (client) => client.storage.getProgram(request),
      (client) => client.storage.getProgramData(request),
      (client) => client.storage.listFields(request),
    );
    for (const field of ["title", "tags", "none", "", "o", "subtitle"]) {
      calls.push(
        (client) => client.storage.getField({ ...request, field }),
        (client) => client.storage.hasField({ ...request, field }),
        (client) => client.storage.getFieldType({ ...request, field }),
        (client) => client.storage.getFieldItem({ ...request, field, index: 1 }),
        (client) => client.storage.getFieldItem({ ...request, field, index: 0, fromEnd: true, withLength: true }),
        (client) => client.storage.getFieldItem({ ...request, field, index: 3 }),
      );
    }
  }
  for (const nullifierHash of [element(7), element(8), element(7).toUpperCase().replace("X", "x"), "7"]) {
    calls.push((client) => client.zk.getNullifier({ nullifierHash }));
  }
  for (const address of [plain.publicKey!, plain.publicKey!.slice(2).toUpperCase(), element(1), "nobody"]) {
    calls.push((client) => client.chain.getSender({ address }));
  }
  calls.push(
    (client) => client.zk.getMerkleRoot({}),
    (client) => client.zk.getMerkleProof({ commitment: element(42) }),
    (client) => client.info.getGenesis({}),
    (client) => client.chain.getBlock({ number: 1n }),
  );
  for (const [i, call] of calls.entries()) {
    t.deepEqual(await outcomeOf(call(node)), await outcomeOf(call(plain)), `call ${i}`);
  }
  t.true(calls.length > 250);
});

test("the client has the root of the empty commitment tree", (t) => {
  t.is(emptyCommitmentRoot, toHex(emptyNodes()[20]!));
});

test("every call is verified or throws", async (t) => {
  const node = connect(t);
  const services = { ...node };
  const descriptors = [StorageService, ZkService, ChainService, InfoService, HealthService, AttestationService];
  const proved: string[] = [];
  for (const { methods, name: service } of descriptors) {
    const client = services[service.replace("Service", "").toLowerCase() as "storage"] as unknown as Readonly<
      Record<string, (request: object) => Promise<unknown> & AsyncIterable<unknown>>
    >;
    for (const method of methods) {
      if (isProvable(method)) {
        proved.push(method.localName);
        continue;
      }
      const call = async () => {
        if (method.methodKind === "unary") {
          return await client[method.localName]!({});
        }
        for await (const _ of client[method.localName]!({})) {
          t.fail(method.localName);
        }
        return undefined;
      };
      const error = await t.throwsAsync(call, { instanceOf: ProofError }, method.localName);
      t.like(error, { flaw: "unprovable", reason: "UNPROVED" });
      t.regex(error.message, /cannot be proven/);
    }
  }
  t.deepEqual(proved.sort(), [
    ...["getBlock", "getField", "getFieldItem", "getFieldType", "getGenesis", "getHead", "getMerkleProof"],
    ...["getMerkleRoot", "getNullifier", "getProgram", "getProgramData", "getSender", "getTransaction", "hasField"],
    ...["listFields", "submitTransaction"],
  ]);
  await t.throwsAsync(node.zk.getMerkleProof({ commitment: element(42) }), {
    message: /without the option verify\.hashPair/,
  });
  await t.throwsAsync(node.watchHealth().next(), { instanceOf: ProofError });
});

test("the head is the block of the proven header, on the pinned network", async (t) => {
  const node = connect(t);
  const { number, hash, genesisHash, timestampMs } = await node.chain.getHead({});
  t.like(await plain.chain.getBlock({ number }), { hash, header: { timestampMs, genesisHash: testNetwork } });
  t.is(genesisHash, testNetwork);
  t.is(await node.network(), testNetwork);
  const other = connect(t, { genesisHash: element(1) });
  t.like(await t.throwsAsync(other.chain.getHead({})), { name: "ProofError", flaw: "network" });
  t.throws(() => createGatehouse(member.rpcUrl, { verify: {} }), { instanceOf: TypeError });
  t.throws(() => createGatehouse(member.rpcUrl, { verify: { genesisHash: "0x1" } }), { instanceOf: TypeError });
});

test("submits a transaction, waits for it, and verifies it in its block", async (t) => {
  const node = connectWith(t, { signer: keyFromSeed(new Uint8Array(32).fill(44)) });
  const { hash } = await node.submit(createProgram({ name: "mine" }));
  const { blockNumber } = await node.waitFor(hash);
  t.is(blockNumber, (await plain.waitFor(hash)).blockNumber);
  // A proof that no block contains a transaction is impossible.
  t.like(await t.throwsAsync(node.chain.getTransaction({ hash: element(5) })), { flaw: "unprovable" });

  // A node that names a wrong block for the transaction.
  const dishonest = connectWith(t, { transport: lying("GetTransaction", { blockNumber: 1n }) });
  t.like(await t.throwsAsync(dishonest.waitFor(hash)), { name: "ProofError", flaw: "missing" });
});

test("rejects a block older than one seen before, also in an earlier run", async (t) => {
  const seen: SignedHeader[] = [];
  let state = signState({ number: head.number + 5n });
  const prove = (request: GetProofRequest): GetProofResponse => Object.assign(prover.prove(request), state);
  const node = connect(t, { prove, onSeen: (header) => seen.push(header) });
  t.like(await node.chain.getHead({}), { number: head.number + 5n });
  await node.chain.getHead({});
  t.deepEqual(
    seen.map(({ number }) => number),
    [head.number + 5n],
  );

  state = signState({ number: head.number + 4n });
  t.like(await t.throwsAsync(node.chain.getHead({})), { flaw: "rollback" });
  const later = connect(t, { prove, seen: seen[0] });
  t.like(await t.throwsAsync(later.chain.getHead({})), { flaw: "rollback" });

  state = signState({ number: head.number + 5n, timestampMs: BigInt(Date.now() - 1) });
  const fork = await t.throwsAsync(later.chain.getHead({}), { instanceOf: ProofError });
  t.is(fork.flaw, "fork");
  t.deepEqual(fork.evidence?.[0], seen[0]);
  t.deepEqual(fork.evidence?.[1].header, state.header);
});

test("accepts an older block from a concurrent call that ends later", async (t) => {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  let calls = 0;
  const prove = async (request: GetProofRequest): Promise<GetProofResponse> => {
    const first = calls++ === 0;
    const state = signState({ number: head.number + (first ? 0n : 1n) });
    if (first) {
      await released;
    }
    return Object.assign(prover.prove(request), state);
  };
  const node = connectWith(t, { transport: withProofs(prove) });
  await node.info.getGenesis({});
  const older = node.chain.getHead({});
  t.like(await node.chain.getHead({}), { number: head.number + 1n });
  release();
  t.like(await older, { number: head.number });
});

test("rejects a proof older than maxAgeS", async (t) => {
  const prove = (request: GetProofRequest): GetProofResponse =>
    Object.assign(prover.prove(request), signState({ timestampMs: BigInt(Date.now() - 200_000) }));
  t.like(await t.throwsAsync(connect(t, { prove }).chain.getHead({})), { flaw: "age" });
  t.like(await connect(t, { prove, maxAgeS: 300 }).chain.getHead({}), { number: head.number });
});

test("does not accept NOT_FOUND without a proof", async (t) => {
  const storageAddress = addresses["notes"]!;
  const prove = (): GetProofResponse => {
    throw new ConnectError("There is no storage program at this address.", Code.NotFound, undefined, [
      { desc: ErrorInfoSchema, value: { reason: "NOT_FOUND", domain: "gatehouse" } },
    ]);
  };
  const error = await t.throwsAsync(connect(t, { prove }).storage.getProgram({ storageAddress }), {
    instanceOf: ProofError,
  });
  t.is(error.flaw, "missing");
  // Connection errors are passed on.
  const busy = (): GetProofResponse => {
    throw new ConnectError("Try again.", Code.Unavailable);
  };
  t.like(await t.throwsAsync(connect(t, { prove: busy }).storage.getProgram({ storageAddress })), {
    reason: "UNREACHABLE",
  });
});

test("verifies the block number of the commitment root by the header", async (t) => {
  const { blockNumber, rootHash } = await plain.zk.getMerkleRoot({});
  const node = connect(t);
  t.is((await node.zk.getMerkleRoot({})).blockNumber, blockNumber);
  const dishonest = connectWith(t, { transport: lying("GetMerkleRoot", { blockNumber: blockNumber - 1n }) });
  t.like(await t.throwsAsync(dishonest.zk.getMerkleRoot({})), { name: "ProofError", flaw: "value" });
  t.regex(rootHash, /^0x/);
});

test("answerProved works with any source of proofs", async (t) => {
  const network = { genesisHash: testNetwork, genesis: "", authorities: new Set<string>(), timestampMs: 0n };
  const source = {
    prove: () => Promise.reject(new ProofError("path", "The path is invalid.")),
    network: () => Promise.resolve(network),
    ask: <I extends DescMessage, O extends DescMessage>(_: DescMethodUnary<I, O>, __: MessageInitShape<I>) =>
      Promise.reject(new Error("No call is expected.")),
    hashPair: undefined,
  };
  const request = { storageAddress: missing };
  t.like(await t.throwsAsync(answerProved(StorageService.method.getProgram, request, source)), { flaw: "path" });
  t.like(await t.throwsAsync(answerProved(StorageService.method.searchPrograms, {}, source)), { flaw: "unprovable" });
});
