/** Invalid handshakes: the caller gets the reason, and is listed as unverified. */
import { create, toBinary } from "@bufbuild/protobuf";
import test from "ava";
import type { ServiceError } from "@grpc/grpc-js";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect } from "node:tls";
import { BlockHeaderSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { PeerService } from "../../gen/gatehouse/peer/v1/peer_pb.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { testKey } from "../helpers/chain/keys.js";
import { endpointOf, networkOf, peersOf, startMemberOf, untilPeerIs } from "../helpers/nodes/network.js";
import { connectStranger, type OddPeer, signNodeInfo, startOddPeer } from "../helpers/nodes/odd-peer.js";
import { anyRoots } from "../helpers/chain/seed.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { makeCertificate } from "../helpers/nodes/start-node.js";
import { likeLists } from "../helpers/like-lists.js";

const authority = testKey(1);
const [mine, theirs] = [testKey(7), testKey(8)];
const { genesis, genesisHash } = networkOf(authority);
/** The status of a node whose head has no signature. */
const unsigned = {
  headHeader: toBinary(BlockHeaderSchema, create(BlockHeaderSchema, { number: 9n, ...anyRoots })),
  headSignature: new Uint8Array(64),
};
/** An endpoint without a listener. */
const deadEndpoint = "https://127.0.0.1:9";

/** The gRPC code and message of an error; "not rejected" without one. */
async function rejectionOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
    return "not rejected";
  } catch (error) {
    const { code, details } = error as ServiceError;
    return `${code}: ${details}`;
  }
}

/** Starts a node, and connects a stranger to it. */
async function startWithStranger(t: Teardown, flags: Readonly<Record<string, boolean>> = {}) {
  const node = await startMemberOf(t, { key: authority, genesis, flags });
  return { node, stranger: connectStranger(t, node.ports["omni"]!, mine) };
}

test("rejects invalid handshakes with the reason, and lists the caller as unverified", async (t) => {
  const { node, stranger } = await startWithStranger(t);
  const port = (n: number) => ({ endpoint: `https://127.0.0.1:${n}` });
  type Fields = Omit<Parameters<typeof stranger.handshake>[0], "genesisHash"> & { readonly genesisHash?: string };
  const cases: readonly (readonly [label: string, fields: Fields, expected: RegExp, isListed?: boolean])[] = [
    ["forged", { ...port(1), signer: theirs }, /^16: .*not signed by its own identity/],
    [
      "the identity and signature of another node",
      { ...port(2), signer: theirs, identity: theirs.publicKey },
      /^16: The identity is not that of the TLS connection/,
      true,
    ],
    ["another network", { ...port(3), genesisHash: `0x${"1".repeat(64)}` }, /^7: .*another network/, true],
    ["an unknown challenge", { ...port(4), challenge: new Uint8Array(40) }, /^16: The challenge was not issued/, true],
    ["an unsigned head", { ...port(5), status: unsigned }, /^16: The block is not signed by its proposer/, true],
    ["no port", { endpoint: "https://127.0.0.1:0" }, /^3: .* must have the form/],
    ["a path", { endpoint: "https://127.0.0.1:6/x" }, /^3: .* must have the form/],
    ["no URL", { endpoint: "127.0.0.1:6" }, /^3: .* must have the form/],
    ["cleartext", { endpoint: "http://127.0.0.1:6" }, /^3: .* must start with https/],
    ["the node's own address", { endpoint: endpointOf(node) }, /^3: .*this node's own address/],
    ["cloud metadata", { endpoint: "https://169.254.169.254:80" }, /^3: .*nodes never connect to/],
    ["the same as IPv4-mapped IPv6", { endpoint: "https://[::ffff:a9fe:a9fe]:80" }, /^3: .*nodes never connect to/],
    ["a connection string", { ...port(7), connectionString: "javascript:alert(1)" }, /^3: .* must have the form/, true],
  ];
  for (const [label, fields, expected, isListed = false] of cases) {
    const rejection = await rejectionOf(stranger.handshake({ genesisHash, ...fields }));
    t.regex(rejection, expected, label);
    const listed = (await peersOf(node)).find(({ connection }) => connection.string === fields.endpoint);
    t.is(listed !== undefined, isListed, label);
    if (listed !== undefined) {
      t.like(listed, { verification: { status: false }, status: { online: false, ready: false } }, label);
      t.true(rejection.endsWith(`: ${listed.verification.message}`), label);
    }
  }
  const { handshake } = PeerService.method;
  t.regex(
    await rejectionOf(stranger.call(handshake, { challenge: new Uint8Array(16) })),
    /^3: The node info is missing/,
  );
  t.regex(await rejectionOf(stranger.call(handshake, {})), /^3: The challenge must have/);
});

test("a handshake cannot be replayed, by its owner or another node", async (t) => {
  const { node, stranger: owner } = await startWithStranger(t);
  const { challenge } = await owner.call(PeerService.method.getChallenge, {});
  const nodeInfo = signNodeInfo(mine, {
    ...{ challenge, identity: mine.publicKey, genesisHash, status: {} },
    ...{ connectionString: "http://127.0.0.1:1", endpoint: deadEndpoint },
  });
  const request = { nodeInfo, challenge: new Uint8Array(32) };
  await owner.call(PeerService.method.handshake, request);
  t.regex(await rejectionOf(owner.call(PeerService.method.handshake, request)), /^16: The challenge was not issued/);
  const thief = connectStranger(t, node.ports["omni"]!, theirs);
  t.regex(await rejectionOf(thief.call(PeerService.method.handshake, request)), /^16: /);
  // The caller is verified only after the node has dialed its endpoint.
  const listed = (await peersOf(node)).find(({ connection }) => connection.string === deadEndpoint);
  t.like(listed, { verification: { status: false }, status: { online: false } });
});

test("rejects an identity at a second endpoint while the first one responds", async (t) => {
  const { node, stranger: thief } = await startWithStranger(t);
  const holder = await startMemberOf(t, { key: mine, genesis, seeds: [endpointOf(node)] });
  await until(async () => (await peersOf(node))[0]?.verification.status === true);
  const rejection = await rejectionOf(thief.handshake({ endpoint: deadEndpoint, genesisHash }));
  t.regex(rejection, /^7: Its identity belongs to the peer at https/);
  t.is((await peersOf(node)).find(({ identity }) => identity === mine.publicKey)!.connection.string, holder.rpcUrl);
  // A node that has moved is accepted once its old endpoint does not respond.
  await holder.stop();
  await until(async () => !(await peersOf(node))[0]!.status.online);
  const moved = await startMemberOf(t, { key: mine, genesis, seeds: [endpointOf(node)] });
  await until(async () =>
    (await peersOf(node)).some(({ connection, status }) => connection.string === moved.rpcUrl && status.online),
  );
  t.is((await peersOf(node)).filter(({ identity }) => identity === mine.publicKey).length, 1);
});

test("a dialed peer must prove its identity and report a valid status", async (t) => {
  const changed = (fields: object): Partial<OddPeer> => ({
    changeNodeInfo: (nodeInfo) => ({ ...nodeInfo, ...fields }),
  });
  const cases = [
    [changed({ challenge: new Uint8Array(32) }), /was created for another node/],
    [changed({ identity: theirs.publicKey }), /not signed by its own identity/],
    [changed({ status: undefined }), /does not report its latest block/],
    [{ status: () => unsigned }, /not signed by its proposer/],
    [changed({ endpoint: "nonsense" }), /must have the form/],
  ] as const;
  const odd = await Promise.all(
    cases.map(([changes], i) => startOddPeer(t, { key: testKey(40 + i), genesisHash, ...changes })),
  );
  const node = await startMemberOf(t, { key: authority, genesis, seeds: odd.map(({ endpoint }) => endpoint) });
  for (const [i, [, reason]] of cases.entries()) {
    await untilPeerIs(node, reason, i);
    t.false((await peersOf(node))[i]!.verification.status);
  }
});

test("closes a connection without a certificate, or without an Ed25519 key, before it sends data", async (t) => {
  const { node } = await startWithStranger(t);
  const files = await makeCertificate(await temporaryDirectory(t));
  const other = { cert: await readFile(files.cert), key: await readFile(files.key) };
  for (const credentials of [{}, other]) {
    const target = { host: "127.0.0.1", port: node.ports["omni"]!, rejectUnauthorized: false, ALPNProtocols: ["h2"] };
    const socket = connect({ ...target, ...credentials }).on("error", () => undefined);
    socket.resume();
    await once(socket, "close");
    t.is(socket.bytesRead, 0);
  }
});

test("rejects announced private addresses unless allowed, and dials those of the peers file", async (t) => {
  const flags = { "allow-private-peers": false };
  const { node, stranger } = await startWithStranger(t, flags);
  for (const host of ["127.0.0.1", "10.1.2.3", "localhost", "[::1]", "0x7f.1"]) {
    const rejection = await rejectionOf(stranger.handshake({ endpoint: `https://${host}:1`, genesisHash }));
    t.regex(rejection, /^3: .* is a loopback or private address/, host);
  }
  t.deepEqual(await peersOf(node), []);
  const second = await startMemberOf(t, { key: theirs, genesis, seeds: [endpointOf(node)], flags });
  await untilPeerIs(second, /rejected this node: .*loopback or private/);
});

test("accepts relayed transactions from any verified key, at most 100 in a request", async (t) => {
  const { stranger } = await startWithStranger(t);
  const transaction = signTransaction(testKey(9), 1, createPublic("a", "{}"));
  const relay = (count: number) =>
    stranger.call(PeerService.method.relayTransactions, {
      transactions: Array.from({ length: count }, () => transaction),
    });
  const { PENDING } = TransactionStatus;
  likeLists(t, await relay(2), { outcomes: [{ status: PENDING }, { status: PENDING }] });
  t.regex(await rejectionOf(relay(101)), /^3: At most 100/);
});
