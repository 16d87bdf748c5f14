/** The client package, imported by its public name, against real nodes. */
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { Code, ConnectError, createRouterTransport, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import type { WatchHealthResponse } from "../../gen/gatehouse/health/v1/health_pb.js";
import test from "ava";
import {
  type Access,
  addCommitment,
  appendItem,
  createGatehouse,
  createProgram,
  deleteField,
  deleteItem,
  deleteProgram,
  GatehouseError,
  type GatehouseOptions,
  identityHeaders,
  jsonText,
  keyFromPem,
  keyFromSeed,
  type Operation,
  programAddress,
  setField,
  setItem,
  signTransaction,
  spendNullifier,
  updateAccess,
  writeProgram,
} from "gatehouse-client";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { TransactionBodySchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";
import { AccessMode } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { parseProof } from "../../src/zk/groth16.js";
import { freePort } from "../helpers/nodes/free-port.js";
import { proofJson } from "../helpers/chain/groth16.js";
import { testKey } from "../helpers/chain/keys.js";
import { ask } from "../helpers/wire/plain-client.js";
import { authorityDirectory, startMember, startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import { fileTeardown, type Teardown } from "../helpers/nodes/teardown.js";
import { testNetwork } from "../helpers/chain/transactions.js";
import { version as nodeVersion } from "../../src/base/version.js";
import { until } from "../helpers/nodes/until.js";

const element = (value: number): string => `0x${value.toString(16).padStart(64, "0")}`;
const keyOf = (number: number) => keyFromSeed(new Uint8Array(32).fill(number));

let member: TestNode;
const file = fileTeardown();
test.before(async () => {
  member = await startMember(file, { "identity-form": "network" });
});

/** Creates a client of a node. It is closed after the test. */
function connect(t: Teardown, url: string, options: GatehouseOptions = {}) {
  const node = createGatehouse(url, options);
  t.teardown(() => node.close());
  return node;
}

/** Creates a client of the node that the tests share. */
const connectMember = (t: Teardown, options?: GatehouseOptions) => connect(t, member.rpcUrl, options);

/** A short wait before retries. */
const fastRetry = { firstWaitMs: 5 };

test("every operation of a program has a builder, and a node applies it", async (t) => {
  const node = connectMember(t, { signer: keyOf(30) });
  t.is(node.publicKey, testKey(30).publicKey);
  t.is(await node.network(), testNetwork);
  const metadata = { by: "test" };
  const data = { title: "Hello", tags: ["a"], n: 1 };
  const created = await node.submit(createProgram({ name: "notes", data, salt: "s", metadata, access: "public" }));
  const { storageAddress } = created;
  t.is(storageAddress, programAddress(testKey(30).publicKey, "notes", created.nonce, "s"));
  const run = async (operation: Operation): Promise<void> => {
    const submitted = await node.submit(operation);
    t.is(submitted.storageAddress, storageAddress);
    const included = await node.waitFor(submitted.hash);
    t.is(included.hash, submitted.hash);
    t.true(included.blockNumber > 0n);
  };
  const expectData = async (json: string): Promise<void> => {
    t.is((await node.storage.getProgramData({ storageAddress })).data, json);
  };
  await node.waitFor(created.hash);
  const program = await connectMember(t).storage.getProgram({ storageAddress });
  t.like(program, { programName: "notes", owner: testKey(30).publicKey, metadata: '{"by":"test"}' });
  await expectData('{"title":"Hello","tags":["a"],"n":1}');
  await run(setField(storageAddress, "n", jsonText("1.50")));
  await run(appendItem(storageAddress, "tags", { deep: [true, null] }));
  await expectData('{"title":"Hello","tags":["a",{"deep":[true,null]}],"n":1.50}');
  await run(setItem(storageAddress, "tags", 0, "b"));
  await run(deleteItem(storageAddress, "tags", 1));
  await run(deleteField(storageAddress, "title"));
  await expectData('{"tags":["b"],"n":1.50}');
  await run(writeProgram(storageAddress, Uint8Array.of(1, 2, 3)));
  await expectData('"AQID"');
  const permissions = ["read", "write"] as const;
  const groups = { team: { members: [testKey(33).publicKey], permissions } };
  const access: Access = {
    mode: "restricted",
    allowed: [testKey(31).publicKey],
    blacklisted: [testKey(32).publicKey],
    groups,
  };
  await run(updateAccess(storageAddress, access));
  const { acl } = await node.storage.getProgram({ storageAddress });
  t.like(acl, { mode: AccessMode.RESTRICTED, allowed: access.allowed, blacklisted: access.blacklisted });
  t.deepEqual(acl?.groups["team"]?.members, groups.team.members);
  t.is(acl?.groups["team"]?.permissions.length, 2);
  await run(deleteProgram(storageAddress));
  await t.throwsAsync(node.storage.getProgram({ storageAddress }), { message: /no storage program/ });

  // A program without data, and bytes that the caller changes after the call.
  const bytes = Uint8Array.of(9);
  const empty = await node.submit(createProgram({ name: "empty" }));
  const binary = createProgram({ name: "binary", data: bytes });
  bytes[0] = 8;
  const { hash, storageAddress: binaryAddress } = await node.submit(binary);
  await node.waitFor(hash);
  t.is((await node.storage.getProgramData({ storageAddress: empty.storageAddress })).data, undefined);
  t.is((await node.storage.getProgramData({ storageAddress: binaryAddress })).data, '"CQ=="');
});

test("commitments and nullifiers have builders, and proofs are encoded for the node", async (t) => {
  // The authority may spend without a proof.
  const node = connectMember(t, { signer: keyOf(1) });
  const added = await node.submit(addCommitment(42n));
  const spent = await node.submit(spendNullifier({ nullifierHash: element(7) }));
  t.is(spent.storageAddress, undefined);
  await node.waitFor(added.hash);
  await node.waitFor(spent.hash);
  t.is((await node.zk.getMerkleProof({ commitment: element(42) })).proof?.leaf, element(42));
  const nullifier = await node.zk.getNullifier({ nullifierHash: element(7) });
  t.like(nullifier, { used: true, transactionHash: spent.hash });

  const proof = proofJson([7n, 8n]) as Parameters<typeof spendNullifier>[0] extends { proof?: infer P } ? P : never;
  const operation = spendNullifier({ nullifierHash: 7n, root: 8n, proof });
  t.deepEqual(operation as unknown, {
    case: "zk",
    value: {
      operation: {
        case: "spendNullifier",
        value: { nullifierHash: element(7), root: element(8), proof: parseProof(proof) },
      },
    },
  });
  t.throws(() => spendNullifier({ nullifierHash: 7n, proof: { pi_a: ["1"], pi_b: [], pi_c: [] } }), {
    instanceOf: TypeError,
  });
});

interface Vectors {
  readonly keys: readonly { name: string; seed: string; publicKey: string; pem: string }[];
  readonly refused: readonly { name: string; pem: string; encoding: string }[];
  readonly addresses: readonly {
    name: string;
    owner: string;
    programName: string;
    nonce: string;
    salt: string;
    address: string;
  }[];
  readonly identities: readonly {
    name: string;
    seed: string;
    identity: string;
    timestamp: string;
    network: string | null;
    signature: string;
  }[];
  readonly transactions: readonly {
    name: string;
    seed: string;
    fields: JsonValue & { nonce: string; timestampMs?: string; expiresMs: string; network: string };
    encoding: string;
    body: string;
    hash: string;
    signature: string;
    address?: string;
  }[];
}

const vectors = async (name: string) => JSON.parse(await readFile(`examples/vectors/${name}.json`, "utf8")) as Vectors;

test("reads a PEM key only in its exact encoding", (t) => {
  const { publicKey } = keyOf(1);
  const sequence = (hex: string): string => `30${(hex.length / 2).toString(16).padStart(2, "0")}${hex}`;
  const base64 = (hex: string): string => Buffer.from(hex, "hex").toString("base64");
  const pem = (content: string): string => `-----BEGIN PRIVATE KEY-----\n${content}\n-----END PRIVATE KEY-----\n`;
  const ofVersion = (version: number): string => `02010${version}300506032b657004220420${"01".repeat(32)}`;
  const attributes = "a00b300906035504033102" + "0c00";
  const point = `812100${publicKey.slice(2)}`;
  const [short, long] = [sequence(ofVersion(0)), sequence(ofVersion(1) + point)];
  const lines = base64(short).replace(/.{20}/g, "$&\r\n");
  for (const content of [base64(short), lines, base64(long), base64(sequence(ofVersion(1) + attributes + point))]) {
    t.is(keyFromPem(pem(content)).publicKey, publicKey, content);
  }
  for (const [what, content] of Object.entries({
    "bytes after the key": base64(`${short}00`),
    "bytes after the key that its length includes": base64(sequence(`${ofVersion(0)}00`)),
    "another length": base64(`302f${ofVersion(0)}`),
    "a public key of 31 bytes": base64(sequence((ofVersion(1) + point).slice(0, -2))),
    "bits after the last byte": base64(long).replace(/.=$/, (end) => String.fromCharCode(end.charCodeAt(0) + 1) + "="),
    "padding inside": base64(short).replace(/^..../, "$&="),
  })) {
    t.throws(() => keyFromPem(pem(content)), { instanceOf: TypeError }, what);
  }
});

test("keys, addresses, identities and transactions equal the test vectors", async (t) => {
  const { keys, refused } = await vectors("keys");
  for (const { name, seed, publicKey, pem } of keys) {
    t.is(keyFromSeed(seed).publicKey, publicKey, name);
    t.is(keyFromPem(pem).publicKey, publicKey, name);
  }
  t.true(keys.length > 0 && refused.length > 0);
  for (const { name, pem } of refused) {
    t.throws(() => keyFromPem(pem), { instanceOf: TypeError }, name);
  }
  const { addresses } = await vectors("addresses");
  for (const { name, owner, programName, nonce, salt, address } of addresses) {
    t.is(programAddress(owner, programName, BigInt(nonce), salt), address, name);
  }
  const { identities } = await vectors("identities");
  // This client writes keys in one of the allowed forms.
  const supported = identities.filter(({ identity }) => /^ed25519:0x[0-9a-f]{64}$/.test(identity));
  for (const { name, seed, identity, timestamp, network, signature } of supported) {
    const headers = await identityHeaders(keyFromSeed(seed), network!, Number(timestamp));
    t.deepEqual(headers, { identity, timestamp, network, signature } as typeof headers, name);
  }
  const { transactions } = await vectors("transactions");
  const canonical = transactions.filter(({ encoding }) => encoding === "canonical");
  for (const { name, seed, fields, body, hash, signature } of canonical) {
    const { operation } = fromJson(TransactionBodySchema, fields);
    const { network, nonce, timestampMs, expiresMs } = fields;
    const times = { timestampMs: Number(timestampMs ?? 0), expiresMs: Number(expiresMs) };
    const content = { operation: operation as Operation, network, nonce: BigInt(nonce), ...times };
    const signed = await signTransaction(keyFromSeed(seed), content);
    t.is(Buffer.from(signed.transaction.body).toString("hex"), body, name);
    t.is(signed.hash, hash, name);
    t.is(Buffer.from(signed.transaction.signature).toString("hex"), signature, name);
  }
  t.deepEqual(
    [addresses, supported, canonical].map(({ length }) => length > 0),
    [true, true, true],
  );
});

test("rejects invalid JSON, keys and addresses before it sends a request", async (t) => {
  for (const create of [
    () => setField("stor-1", "a", undefined as never),
    () => keyFromSeed(new Uint8Array(31)),
    () => keyFromSeed("0x12"),
    () => keyFromPem("-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----"),
    () => createGatehouse("nonsense"),
    () => createGatehouse("ftp://127.0.0.1"),
    () => createGatehouse(member.rpcUrl, { network: "0x12" }),
    () => createGatehouse(member.rpcUrl, { signer: { publicKey: "0x12", sign: () => new Uint8Array(64) } }),
  ]) {
    t.throws(create, { instanceOf: TypeError }, create.toString());
  }
  t.throws(() => jsonText("{"), { instanceOf: SyntaxError });
  // Types reject a text inside of a value, but not in JavaScript.
  const nested = { a: [jsonText("1.50")] } as never;
  for (const create of [() => setField("stor-1", "n", nested), () => createProgram({ name: "a", data: nested })]) {
    t.throws(create, { instanceOf: TypeError, message: /replaces a whole value/ });
  }
  await t.throwsAsync(connectMember(t).submit(addCommitment(1n)), { instanceOf: TypeError, message: /needs a signer/ });
  const short = { publicKey: testKey(2).publicKey, sign: () => new Uint8Array(3) };
  await t.throwsAsync(connectMember(t, { signer: short }).submit(addCommitment(1n)), { message: /64 bytes/ });
});

test("submits concurrent operations in order, and one that fails does not delay the others", async (t) => {
  const node = connectMember(t, { signer: keyOf(34) });
  const { storageAddress, hash } = await node.submit(createProgram({ name: "list", data: { items: [] } }));
  await node.waitFor(hash);
  const numbers = Array.from({ length: 20 }, (_, i) => i);
  const wrong = t.throwsAsync(node.submit(setField("stor-1", "items", 1)), { instanceOf: GatehouseError });
  const submitted = await Promise.all(
    numbers.map((number) => node.submit(appendItem(storageAddress, "items", number))),
  );
  t.is((await wrong).reason, "INVALID_REQUEST");
  submitted.slice(1).forEach(({ nonce }, i) => t.true(nonce > submitted[i]!.nonce));
  await Promise.all(submitted.map((transaction) => node.waitFor(transaction.hash)));
  t.is((await node.storage.getProgramData({ storageAddress })).data, JSON.stringify({ items: numbers }));
});

test("continues above the last nonce of its key on the chain, whatever the clock says", async (t) => {
  const signer = keyOf(35);
  const ahead = BigInt(Date.now()) + 86_400_000n;
  const first = connectMember(t, { signer });
  const created = await first.submit(createProgram({ name: "ahead", data: {} }), { nonce: ahead });
  t.is(created.nonce, ahead);
  await first.waitFor(created.hash);
  const second = connectMember(t, { signer });
  const set = await second.submit(setField(created.storageAddress, "a", 1), { expiresInMs: 60_000 });
  t.is(set.nonce, ahead + 1n);
  await second.waitFor(set.hash);
  const { body } = await second.chain.getTransaction({ hash: set.hash, withBody: true });
  t.true(Number(body!.expiresMs) <= Date.now() + 60_000);
});

test("continues above an explicit nonce", async (t) => {
  const node = connectMember(t, { signer: keyOf(45) });
  const created = await node.submit(createProgram({ name: "explicit", data: {} }));
  const ahead = BigInt(Date.now()) + 86_400_000n;
  await node.submit(setField(created.storageAddress, "a", 1), { nonce: ahead });
  const last = await node.submit(setField(created.storageAddress, "b", 2));
  t.is(last.nonce, ahead + 1n);
  await node.waitFor(last.hash);
});

test("a wallet signs with a function, and is called as rarely as possible", async (t) => {
  const signed: Uint8Array[] = [];
  const key = testKey(36);
  const signer = {
    publicKey: Buffer.from(key.publicKey.slice(2), "hex"),
    sign: (bytes: Uint8Array) => {
      signed.push(bytes);
      return Promise.resolve(key.sign(bytes));
    },
  };
  const node = connectMember(t, { signer, network: testNetwork.toUpperCase().replace("0X", "0x") });
  const { hash, storageAddress } = await node.submit(createProgram({ name: "diary", data: { day: 1 } }));
  await node.waitFor(hash);
  t.is(signed.length, 1);
  t.regex(Buffer.from(signed[0]!).toString("latin1"), /^gatehouse transaction v2\0/);
  const reads = [1, 2, 3].map(() => node.storage.getProgramData({ storageAddress }));
  t.deepEqual(
    (await Promise.all(reads)).map(({ data }) => data),
    ['{"day":1}', '{"day":1}', '{"day":1}'],
  );
  t.is(signed.length, 2);
  // Public data needs no signature.
  await node.info.getVersion({});
  await node.zk.getMerkleRoot({});

  const denied = { instanceOf: GatehouseError, message: /may read/ };
  for (const [other, reason] of [
    [connectMember(t), "NOT_FOUND"],
    [connectMember(t, { signer: keyOf(37) }), "NOT_FOUND"],
    [connectMember(t, { signer, proveIdentity: false }), "NOT_FOUND"],
    [connectMember(t, { signer, network: element(1) }), "INVALID_SIGNATURE"],
  ] as const) {
    const expected = reason === "NOT_FOUND" ? denied : { instanceOf: GatehouseError };
    const error = await t.throwsAsync(other.storage.getProgramData({ storageAddress }), expected);
    t.is(error.reason, reason);
  }
  t.is(signed.length, 3);
  const unwilling = { ...signer, sign: () => Promise.reject(new Error("The owner says no.")) };
  await t.throwsAsync(connectMember(t, { signer: unwilling }).submit(addCommitment(1n)), { message: /says no/ });
});

test("a transaction signed offline can be submitted by any client, and repeatedly", async (t) => {
  const operation = createProgram({ name: "offline", data: 1 });
  const content = { operation, network: testNetwork, nonce: 5n };
  const signed = await signTransaction(keyOf(38), content);
  const node = connectMember(t);
  const submitted = await node.submitSigned(signed);
  t.like(submitted, { hash: signed.hash, nonce: 5n, storageAddress: signed.storageAddress });
  await node.waitFor(signed.hash);
  t.is((await node.submitSigned(signed)).hash, signed.hash);
});

test("waitFor throws the reason of a rejection, and NOT_FOUND after the timeout", async (t) => {
  const node = connectMember(t, { signer: keyOf(39) });
  const { hash } = await node.submit(setField(`stor-${"0".repeat(40)}`, "a", 1));
  const rejected = await t.throwsAsync(node.waitFor(hash), { instanceOf: GatehouseError });
  t.like(rejected, {
    reason: "REJECTED",
    transactionHash: hash,
    message: "There is no storage program at this address.",
  });
  const unknown = await t.throwsAsync(node.waitFor(element(5), { timeoutMs: 1000 }), { instanceOf: GatehouseError });
  t.is(unknown.reason, "NOT_FOUND");
  // 0 means no limit.
  const operation = createProgram({ name: "late", data: {} });
  const late = await signTransaction(keyOf(39), {
    operation,
    network: testNetwork,
    nonce: BigInt(Date.now()) + 9_000n,
  });
  const unlimited = node.waitFor(late.hash, { timeoutMs: 0 });
  await t.throwsAsync(node.waitFor(late.hash, { timeoutMs: 500 }), { instanceOf: GatehouseError });
  await node.submitSigned(late);
  t.is((await unlimited).hash, late.hash);
  const signal = AbortSignal.abort(new Error("enough"));
  await t.throwsAsync(node.waitFor(element(5), { signal }), { message: "enough" });
  const controller = new AbortController();
  const waiting = t.throwsAsync(node.waitFor(element(5), { signal: controller.signal }), { message: "enough" });
  controller.abort(new Error("enough"));
  await waiting;
});

test("time limits longer than timers support do not end calls and streams at once", async (t) => {
  const node = connectMember(t);
  for (const timeoutMs of [3e9, 1e12, Infinity]) {
    t.regex((await node.info.getPublicKey({}, { timeoutMs })).publicKey, /^0x/, String(timeoutMs));
    const controller = new AbortController();
    const stream = node.health.watchHealth({}, { timeoutMs, signal: controller.signal })[Symbol.asyncIterator]();
    t.truthy(((await stream.next()).value as WatchHealthResponse).snapshot, String(timeoutMs));
    controller.abort(new Error("enough"));
    await t.throwsAsync(stream.next(), { message: "enough" });
  }
});

test("errors have the reason of the node, or UNSPECIFIED", async (t) => {
  const node = connectMember(t);
  const missing = await t.throwsAsync(node.chain.getBlock({ number: 99_999n }), { instanceOf: GatehouseError });
  t.like(missing, { reason: "NOT_FOUND", code: "NotFound", retryAfterMs: undefined, name: "GatehouseError" });
  const stranger = connectMember(t, { signer: keyOf(44), network: element(1) });
  const stream = stranger.chain.listBlocks({ fromNumber: 1n })[Symbol.asyncIterator]();
  const streamed = await t.throwsAsync(async () => await stream.next(), { instanceOf: GatehouseError });
  t.is(streamed.reason, "INVALID_SIGNATURE");
  for (const [reason, domain] of [
    ["NOT_FOUND", "elsewhere.test"],
    ["NEWER_THAN_THIS", "gatehouse"],
    ["toString", "gatehouse"],
    ["9", "gatehouse"],
  ] as const) {
    const transport = createRouterTransport(({ service }) => {
      service(InfoService, {
        getVersion: () => {
          throw new ConnectError("No.", Code.NotFound, undefined, [
            { desc: ErrorInfoSchema, value: { reason, domain } },
          ]);
        },
      });
    });
    const error = await t.throwsAsync(connectMember(t, { transport }).info.getVersion({}));
    t.like(error, { reason: "UNSPECIFIED", code: "NotFound", message: "No." }, reason);
  }
  const port = await freePort();
  const offline = connect(t, `http://127.0.0.1:${port}`, { retry: false });
  const unreachable = await t.throwsAsync(offline.info.getVersion({}), { instanceOf: GatehouseError });
  t.like(unreachable, { reason: "UNREACHABLE", message: `No response from http://127.0.0.1:${port}.` });
});

/** Creates a transport that counts its calls. */
function countingTransport(url: string): { readonly transport: Transport; readonly calls: () => number } {
  const transport = createConnectTransport({ baseUrl: url, httpVersion: "1.1" });
  let calls = 0;
  return {
    transport: {
      ...transport,
      unary: (...args) => {
        calls++;
        return transport.unary(...args);
      },
    },
    calls: () => calls,
  };
}

test("waits for a rate limit as the node demands, but not beyond the timeout", async (t) => {
  const limited = await startTestNode(t, { "rate-limit": "60", "rate-limit-exempt": "" });
  const exhaust = () => until(async () => (await ask(limited.port, "/publickey")).status === 429);
  const { transport, calls } = countingTransport(limited.rpcUrl);
  const node = connect(t, limited.rpcUrl, { transport });
  // The call fails unless a second has passed since the limit was reached.
  await until(async () => {
    await exhaust();
    const before = calls();
    const hasty: unknown = await node.info.getPublicKey({}, { timeoutMs: 500 }).catch((error: unknown) => error);
    if (!(hasty instanceof GatehouseError)) {
      return false;
    }
    t.like(hasty, { reason: "RATE_LIMITED", code: "ResourceExhausted", retryAfterMs: 1000 });
    t.is(calls(), before + 1);
    return true;
  });
  await until(async () => {
    await exhaust();
    const before = calls();
    t.regex((await node.info.getPublicKey({})).publicKey, /^0x/);
    return calls() > before + 1;
  });
  await exhaust();
  const controller = new AbortController();
  const cancelled = t.throwsAsync(node.info.getPublicKey({}, { signal: controller.signal }), { message: "enough" });
  controller.abort(new Error("enough"));
  await cancelled;
});

test("retries transient errors a limited number of times, for writes as well", async (t) => {
  const unready = await startTestNode(t);
  const { transport, calls } = countingTransport(unready.rpcUrl);
  const node = connect(t, unready.rpcUrl, { transport, retry: { ...fastRetry, attempts: 3 } });
  const error = await t.throwsAsync(node.chain.getHead({}), { instanceOf: GatehouseError });
  t.like(error, { reason: "STATE_NOT_READY", code: "Unavailable" });
  t.is(calls(), 3);
  const signed = await signTransaction(keyOf(40), { operation: addCommitment(1n), network: testNetwork, nonce: 1n });
  const rejected = await t.throwsAsync(node.submitSigned(signed), { instanceOf: GatehouseError });
  t.like(rejected, { reason: "STATE_NOT_READY", transactionHash: signed.hash });
  t.is(calls(), 6);
  await t.throwsAsync(node.storage.getProgram({ storageAddress: "x" }), { instanceOf: GatehouseError });
  const once = connect(t, unready.rpcUrl, { transport, retry: false });
  const before = calls();
  await t.throwsAsync(once.chain.getHead({}));
  t.is(calls(), before + 1);
});

test("retries after errors of a proxy: 503 with a date, 429 with seconds, a broken connection", async (t) => {
  const responses = [
    [503, new Date(Date.now() + 1000).toUTCString()],
    [429, "0"],
    [502, ""],
    [0, ""],
  ] as [number, string][];
  let requests = 0;
  const proxy = createServer((request, response) => {
    const [status, retryAfter] = responses[requests++] ?? [200, ""];
    if (status === 0) {
      request.socket.destroy();
    } else if (status === 200) {
      void fetch(`${member.rpcUrl}${request.url}`, { method: "POST", headers: { "content-type": "application/proto" } })
        .then((answer) => answer.arrayBuffer())
        .then((body) => response.writeHead(200, { "content-type": "application/proto" }).end(Buffer.from(body)));
    } else {
      response.writeHead(status, { "retry-after": retryAfter }).end("<html>");
    }
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  t.teardown(() => proxy.close());
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/`;
  t.is((await connect(t, url, { retry: fastRetry }).info.getVersion({})).version, nodeVersion);
  t.is(requests, 5);
});

test("watchHealth survives a restart, and ends with its loop, its signal or its client", async (t) => {
  const dir = await authorityDirectory(t, testKey(1));
  const port = String(await freePort());
  const flags = { genesis: "genesis.json", "rpc-port": port, "streams-per-address": "1", "rate-limit-exempt": "" };
  const first = await startTestNode(t, flags, dir);
  const node = connect(t, first.rpcUrl, { retry: fastRetry });
  let seen = 0;
  const restarted = new AbortController();
  const watching = (async () => {
    for await (const { version } of node.watchHealth()) {
      t.is(version, nodeVersion);
      seen++;
      if (restarted.signal.aborted) {
        break;
      }
    }
  })();
  await until(() => seen > 0);
  await first.stop();
  restarted.abort();
  await startTestNode(t, flags, dir);
  await watching;
  // The address may have one stream, which is free again.
  const controller = new AbortController();
  const again = node.watchHealth({ signal: controller.signal });
  t.is((await again.next()).done, false);
  controller.abort(new Error("enough"));
  await t.throwsAsync(again.next(), { message: "enough" });
  let last: AsyncIterator<unknown>;
  await until(async () => {
    last = node.health.watchHealth({})[Symbol.asyncIterator]();
    const state = await last.next().catch(() => undefined);
    return state !== undefined;
  });
  const ended = t.throwsAsync(async () => {
    while ((await last.next()).done !== true);
  });
  await node.close();
  t.like(await ended, { reason: "CLOSED" });
});

test("close ends all calls of a client, and later calls throw CLOSED", async (t) => {
  const node = connectMember(t, { signer: keyOf(42) });
  const waiting = t.throwsAsync(node.waitFor(element(6)), { instanceOf: GatehouseError });
  const submitting = t.throwsAsync(node.submit(addCommitment(77n)), { instanceOf: GatehouseError });
  await node.close();
  await node.close();
  t.is((await waiting).reason, "CLOSED");
  t.is((await submitting).reason, "CLOSED");
  for (const call of [
    () => node.info.getVersion({}),
    () => node.submit(addCommitment(78n)),
    () => node.waitFor(element(6)),
    () => node.watchHealth().next(),
    () => node.health.watchHealth({})[Symbol.asyncIterator]().next(),
  ]) {
    t.like(await t.throwsAsync<GatehouseError>(call), { reason: "CLOSED", message: "The client is closed." });
  }
});

test("works over another transport", async (t) => {
  const transport = createGrpcTransport({ baseUrl: member.rpcUrl });
  const node = connectMember(t, { transport, signer: keyOf(43) });
  const { hash, storageAddress } = await node.submit(createProgram({ name: "grpc", data: 1 }));
  await node.waitFor(hash);
  t.is((await node.storage.getProgramData({ storageAddress })).data, "1");
  const error = await t.throwsAsync(node.chain.getBlock({ number: 99_999n }), { instanceOf: GatehouseError });
  t.like(error, { reason: "NOT_FOUND", code: "NotFound" });
});
