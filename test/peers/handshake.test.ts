/** Invalid handshakes: the caller gets the reason, and is listed as unverified. */
import { create, toBinary } from "@bufbuild/protobuf";
import test from "ava";
import type { ServiceError } from "@grpc/grpc-js";
import { readFile } from "node:fs/promises";
import { connect } from "node:tls";
import { BlockHeaderSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { PeerService } from "../../gen/gatehouse/peer/v1/peer_pb.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { testKey } from "../helpers/chain/keys.js";
import { endpointOf, networkOf, peersOf, startMemberOf } from "../helpers/nodes/network.js";
import { connectStranger, signNodeInfo, startOddPeer } from "../helpers/nodes/odd-peer.js";
import { anyRoots } from "../helpers/chain/seed.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { makeCertificate } from "../helpers/process/certificate.js";

const authority = testKey(1);
const [mine, theirs, other] = [testKey(7), testKey(8), testKey(9)];
const { genesis, genesisHash } = networkOf(authority);
/** A well-formed header without a signature. */
const unsignedHeader = toBinary(BlockHeaderSchema, create(BlockHeaderSchema, { number: 9n, ...anyRoots }));
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

test("rejects invalid handshakes with the reason, and lists the caller as unverified", async (t) => {
  const node = await startMemberOf(t, { key: authority, genesis });
  const stranger = connectStranger(t, node.ports["omni"]!, mine);
  const port = (n: number): string => `https://127.0.0.1:${n}`;
  const cases: readonly (readonly [string, Parameters<typeof stranger.handshake>[0], RegExp, boolean])[] = [
    ["forged", { endpoint: port(1), genesisHash, signer: theirs }, /^16: .*not signed by its own identity/, false],
    [
      "the identity and signature of another node",
      { endpoint: port(2), genesisHash, signer: theirs, identity: theirs.publicKey },
      /^16: The identity is not that of the TLS connection/,
      true,
    ],
    ["another network", { endpoint: port(3), genesisHash: `0x${"1".repeat(64)}` }, /^7: .*another network/, true],
    [
      "a challenge that was never issued",
      { endpoint: port(4), genesisHash, challenge: new Uint8Array(40) },
      /^16: The challenge was not issued/,
      true,
    ],
    [
      "an unsigned head",
      {
        endpoint: port(5),
        genesisHash,
        status: { headHeader: unsignedHeader, headSignature: new Uint8Array(64) },
      },
      /^16: The block is not signed by its proposer/,
      true,
    ],
    ["no port", { endpoint: "https://127.0.0.1:0", genesisHash }, /^3: .* must have the form/, false],
    ["a path", { endpoint: "https://127.0.0.1:6/x", genesisHash }, /^3: .* must have the form/, false],
    ["no URL", { endpoint: "127.0.0.1:6", genesisHash }, /^3: .* must have the form/, false],
    ["cleartext", { endpoint: "http://127.0.0.1:6", genesisHash }, /^3: .* must begin with https/, false],
    ["the node's own address", { endpoint: endpointOf(node), genesisHash }, /^3: .*this node's own address/, false],
    ["cloud metadata", { endpoint: "https://169.254.169.254:80", genesisHash }, /^3: .*nodes never connect to/, false],
    [
      "cloud metadata as IPv4-mapped IPv6",
      { endpoint: "https://[::ffff:a9fe:a9fe]:80", genesisHash },
      /^3: .*nodes never connect to/,
      false,
    ],
    [
      "an invalid connection string",
      { endpoint: port(7), genesisHash, connectionString: "javascript:alert(1)" },
      /^3: .* must have the form/,
      true,
    ],
  ];
  for (const [label, nodeInfo, expected, isListed] of cases) {
    const rejection = await rejectionOf(stranger.handshake(nodeInfo));
    t.regex(rejection, expected, label);
    const listed = (await peersOf(node)).find(({ connection }) => connection.string === nodeInfo.endpoint);
    t.is(listed !== undefined, isListed, label);
    if (listed !== undefined) {
      t.like(listed, { verification: { status: false }, status: { online: false, ready: false } }, label);
      t.true(rejection.endsWith(`: ${listed.verification.message}`), label);
    }
  }
  t.regex(
    await rejectionOf(stranger.call(PeerService.method.handshake, { challenge: new Uint8Array(16) })),
    /^3: The node info is missing/,
  );
  t.regex(await rejectionOf(stranger.call(PeerService.method.handshake, {})), /^3: The challenge must have/);
});

test("a handshake cannot be replayed, by its owner or another node", async (t) => {
  const node = await startMemberOf(t, { key: authority, genesis });
  const owner = connectStranger(t, node.ports["omni"]!, mine);
  const { challenge } = await owner.call(PeerService.method.getChallenge, {});
  const nodeInfo = signNodeInfo(mine, {
    challenge,
    identity: mine.publicKey,
    genesisHash,
    connectionString: "http://127.0.0.1:1",
    endpoint: deadEndpoint,
    status: {},
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
  const node = await startMemberOf(t, { key: authority, genesis });
  const holder = await startMemberOf(t, { key: mine, genesis, seeds: [endpointOf(node)] });
  await until(async () => (await peersOf(node))[0]?.verification.status === true);
  const thief = connectStranger(t, node.ports["omni"]!, mine);
  t.regex(
    await rejectionOf(thief.handshake({ endpoint: deadEndpoint, genesisHash })),
    /^7: Its identity belongs to the peer at https/,
  );
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
  const cases = [
    [
      { changeNodeInfo: (nodeInfo: object) => ({ ...nodeInfo, challenge: new Uint8Array(32) }) },
      /was created for another node/,
    ],
    [
      { changeNodeInfo: (nodeInfo: object) => ({ ...nodeInfo, identity: theirs.publicKey }) },
      /not signed by its own identity/,
    ],
    [
      { changeNodeInfo: (nodeInfo: object) => ({ ...nodeInfo, status: undefined }) },
      /does not report its latest block/,
    ],
    [
      { status: () => ({ headHeader: unsignedHeader, headSignature: new Uint8Array(64) }) },
      /not signed by its proposer/,
    ],
    [{ changeNodeInfo: (nodeInfo: object) => ({ ...nodeInfo, endpoint: "nonsense" }) }, /must have the form/],
  ] as const;
  const odd = await Promise.all(
    cases.map(([changes], i) => startOddPeer(t, { key: testKey(40 + i), genesisHash, ...changes })),
  );
  const node = await startMemberOf(t, { key: authority, genesis, seeds: odd.map(({ endpoint }) => endpoint) });
  for (const [i, [, reason]] of cases.entries()) {
    await until(async () => reason.test((await peersOf(node))[i]?.verification.message ?? ""));
    t.false((await peersOf(node))[i]!.verification.status);
  }
});

test("closes a connection without a certificate, or without an Ed25519 key, before it sends data", async (t) => {
  const node = await startMemberOf(t, { key: authority, genesis });
  const dir = await temporaryDirectory(t);
  const files = await makeCertificate(dir);
  const other = { cert: await readFile(files.cert), key: await readFile(files.key) };
  for (const credentials of [{}, other]) {
    const socket = connect({
      host: "127.0.0.1",
      port: node.ports["omni"]!,
      rejectUnauthorized: false,
      ALPNProtocols: ["h2"],
      ...credentials,
    });
    const received = await new Promise<number>((resolve) => {
      socket.on("error", () => undefined).on("close", () => resolve(socket.bytesRead));
      socket.resume();
    });
    t.is(received, 0);
  }
});

test("rejects announced private addresses unless allowed, and dials those of the peers file", async (t) => {
  const node = await startMemberOf(t, { key: authority, genesis, flags: { "allow-private-peers": false } });
  const stranger = connectStranger(t, node.ports["omni"]!, mine);
  for (const endpoint of [
    "https://127.0.0.1:1",
    "https://10.1.2.3:1",
    "https://localhost:1",
    "https://[::1]:1",
    "https://0x7f.1:1",
  ]) {
    t.regex(
      await rejectionOf(stranger.handshake({ endpoint, genesisHash })),
      /^3: .* is a loopback or private address/,
      endpoint,
    );
  }
  t.deepEqual(await peersOf(node), []);
  const second = await startMemberOf(t, {
    key: theirs,
    genesis,
    seeds: [endpointOf(node)],
    flags: { "allow-private-peers": false },
  });
  await until(async () =>
    /rejected this node: .*loopback or private/.test((await peersOf(second))[0]?.verification.message ?? ""),
  );
});

test("accepts relayed transactions from any verified key, at most 100 in a request", async (t) => {
  const node = await startMemberOf(t, { key: authority, genesis });
  const stranger = connectStranger(t, node.ports["omni"]!, mine);
  const transaction = signTransaction(other, 1, createPublic("a", "{}"));
  const relay = (count: number) =>
    stranger.call(PeerService.method.relayTransactions, {
      transactions: Array.from({ length: count }, () => transaction),
    });
  const { outcomes } = await relay(2);
  t.deepEqual(
    outcomes.map(({ status }) => status),
    [TransactionStatus.PENDING, TransactionStatus.PENDING],
  );
  t.regex(await rejectionOf(relay(101)), /^3: At most 100/);
});
