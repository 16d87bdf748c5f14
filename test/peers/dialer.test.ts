/** Calls of peers: channels, challenges, failed dials, and the limits of each. */
import test from "ava";
import { mock } from "node:test";
import { PeerService } from "../../gen/gatehouse/peer/v1/peer_pb.js";
import { createChallenges } from "../../src/peers/handshake/challenges.js";
import { createDialer } from "../../src/peers/handshake/dialer.js";
import { createPeerClient } from "../../src/peers/handshake/client.js";
import { resolveEndpoint } from "../../src/peers/address-book/endpoint.js";
import type { NewPeer } from "../../src/peers/address-book/peer.js";
import { createDialRateLimit, DialRateLimited } from "../../src/peers/handshake/dial-rate-limit.js";
import { createPeerBook } from "../../src/peers/address-book/peer-book.js";
import { CallError, type Channel, type OpenChannel } from "../../src/rpc/channel.js";
import { testKey } from "../helpers/chain/keys.js";

const endpoint = (n: number): string => `https://198.51.100.1:${n}`;
const authorityOf = (n: number): string => `198.51.100.1:${n}`;

/** Creates a client with fake channels, and records the opened and closed ones. */
function openClient({ expected, failures = 0 }: { readonly expected?: string; readonly failures?: number } = {}) {
  const opened: string[] = [];
  const closed: string[] = [];
  const openChannel: OpenChannel = ({ authority }) => {
    opened.push(authority);
    const call = () => Promise.resolve({});
    const channel = { identity: "0x1", call, close: () => void closed.push(authority) };
    return opened.length <= failures
      ? Promise.reject(new CallError("Nobody is there.", false))
      : Promise.resolve(channel as unknown as Channel);
  };
  const client = createPeerClient({
    ...{ openChannel, expectedIdentity: () => expected, deadlineMs: 1_000 },
    resolve: (text) => Promise.resolve({ ip: "198.51.100.1", port: Number(new URL(text).port) }),
  });
  const call = (n: number) => client.call(endpoint(n), PeerService.method.getChallenge, {});
  return { client, call, opened, closed };
}

test("shares one channel for each endpoint until it is dropped, and opens another one after a failure", async (t) => {
  const { client, call, opened, closed } = openClient({ failures: 1 });
  await t.throwsAsync(call(1), { instanceOf: CallError });
  await Promise.all([call(1), call(1), call(2)]);
  await call(1);
  t.deepEqual(opened, [1, 1, 2].map(authorityOf));
  t.is(client.identityOf(endpoint(1)), "0x1");
  client.drop(endpoint(1));
  t.is(client.identityOf(endpoint(1)), undefined);
  await call(1);
  t.is(opened.length, 4);
  client.close();
  await Promise.resolve();
  t.deepEqual(closed.sort(), [1, 1, 2].map(authorityOf));
});

test("closes the least recently used channel above 1,024", async (t) => {
  const { call, opened, closed } = openClient();
  for (let n = 1; n <= 1_024; n++) {
    await call(n);
  }
  await call(1);
  t.deepEqual(closed, []);
  await call(2_000);
  t.deepEqual(closed, [authorityOf(2)]);
  await call(1);
  t.is(opened.length, 1_025);
});

test("does not call a peer with an unexpected identity", async (t) => {
  const { client, call, closed } = openClient({ expected: "0x2" });
  await t.throwsAsync(call(1), { instanceOf: CallError, message: /proves the identity 0x1, and no longer 0x2/ });
  t.deepEqual(closed, [authorityOf(1)]);
  t.is(client.identityOf(endpoint(1)), undefined);
});

test("a challenge is valid once, for 30 s, on the node that issued it; 10,000 used ones are remembered", (t) => {
  let nowMs = 1_000_000;
  const challenges = createChallenges(() => nowMs);
  const used = challenges.create();
  challenges.markUsed(used);
  const late = challenges.create();
  nowMs += 30_001;
  const forged = challenges.create();
  forged[30]! ^= 1;
  for (const challenge of [used, late, forged, createChallenges(() => nowMs).create(), new Uint8Array()]) {
    t.throws(() => challenges.markUsed(challenge), { message: /not issued by this node/ });
  }
  for (let i = 0; i < 10_000; i++) {
    challenges.markUsed(challenges.create());
  }
  t.throws(() => challenges.markUsed(challenges.create()), { message: /Too many concurrent handshakes/ });
  nowMs += 30_001;
  t.notThrows(() => challenges.markUsed(challenges.create()));
});

/** Dials all peers of an address book with a client. */
async function dialAll(stored: readonly NewPeer[], client: Parameters<typeof createDialer>[0]["client"]) {
  const errors: unknown[] = [];
  const { publicKey: ownIdentity } = testKey(1);
  const book = createPeerBook({ ownIdentity, stored, intervalMs: 1_000, nowMs: Date.now });
  const status = { head: { number: 0n, hash: "0x1" }, lowestBlock: 0n, statedMs: 0, clockOffsetMs: undefined };
  const dialer = createDialer({
    self: {
      ...{ key: testKey(1), genesisHash: "0x1", version: "0", instanceId: Buffer.alloc(16) },
      connectionString: () => "http://198.51.100.2:1",
      endpoint: () => "https://198.51.100.2:2",
      status: () => ({}),
    },
    ...{ book, client, policy: { tls: true, allowPrivate: false }, nowMs: Date.now },
    dialRateLimit: createDialRateLimit(1_000),
    readStatus: () => ({ ...status, accepting: true }),
    onKeyElsewhere: () => undefined,
    onVerified: () => undefined,
    onError: (error) => errors.push(error),
  });
  await Promise.all(book.due(10).map((peer) => dialer.dial(peer, 0)));
  return { errors, entries: book.entries(), book };
}

test("an internal error is reported; a peer that is silent or rejects this node counts as failed", async (t) => {
  const bug = new TypeError("undefined is not a function");
  for (const [failure, errors, entry] of [
    [bug, [bug], { failures: 0, message: undefined }],
    [new CallError("no answer", false), [], { failures: 1, message: undefined }],
    [new CallError("no", true), [], { failures: 1, message: "The peer rejected this node: no" }],
  ] as const) {
    const client = { call: () => Promise.reject(failure), drop: () => undefined, identityOf: () => undefined };
    const result = await dialAll([{ endpoint: endpoint(1), origin: "file" }], client);
    t.deepEqual(result.errors, errors);
    t.like(result.entries[0], entry);
  }
});

test("a name that cannot be resolved counts as a failure, and the peer stays verified", async (t) => {
  const verified = { identity: testKey(5).publicKey, connectionString: "http://a.test:1", verifiedMs: Date.now() };
  const client = createPeerClient({
    openChannel: () => Promise.reject(new Error("Nobody was to be called.")),
    resolve: (asked) => resolveEndpoint(asked, { tls: true, allowPrivate: false }),
    ...{ expectedIdentity: () => undefined, deadlineMs: 10_000 },
  });
  const stored: readonly NewPeer[] = [
    { ...verified, endpoint: "https://no-such-name.invalid:1", origin: "handshake", lastSeenMs: Date.now() },
    { endpoint: "https://no-such-name.invalid:2", origin: "handshake" },
  ];
  const { errors, entries, book } = await dialAll(stored, client);
  t.deepEqual(errors, []);
  t.like(entries[0], { ...verified, failures: 1, message: undefined });
  t.true(entries[0]!.nextTryMs > Date.now());
  t.like(entries[1], { failures: 1, message: undefined });
  t.true(book.list()[0]!.verification.status);
});

test("limits dials of an endpoint and connections to an address", (t) => {
  const clock = { nowMs: 1_000_000 };
  const mocked = mock.method(performance, "now", () => clock.nowMs);
  t.teardown(() => mocked.mock.restore());
  const limit = createDialRateLimit(5_000);
  /** Counts the connections of 1,000 that are allowed. */
  function connect(ip: string, isVerified: boolean): number {
    let counted = 0;
    for (let i = 0; i < 1_000; i++) {
      try {
        limit.countConnection(ip, isVerified);
        counted++;
      } catch (error) {
        t.true(error instanceof DialRateLimited);
      }
    }
    return counted;
  }
  t.true(limit.tryDial("https://a:1"));
  t.false(limit.tryDial("https://a:1"));
  t.false(limit.tryDialBack("https://a:1"));
  t.true(limit.tryDialBack("https://b:1"));
  clock.nowMs += 2_500;
  t.true(limit.tryDial("https://a:1"));

  for (const [ip, isVerified, allowed, advanceMs] of [
    ["192.0.2.1", false, 8, 0],
    ["::ffff:192.0.2.1", false, 0, 0],
    ["192.0.2.2", false, 8, 0],
    ["2001:db8::1", false, 8, 0],
    ["2001:db8:0:0:ffff::2", false, 0, 0],
    ["2001:db8:0:1::1", false, 8, 0],
    // Verified peers have a separate, larger limit.
    ["192.0.2.1", true, 64, 10_000],
    ["192.0.2.1", false, 1, 0],
    // A clock that is set back adds no capacity.
    ["192.0.2.1", true, 10, -3_600_000],
    ["192.0.2.1", false, 0, 3_600_000],
  ] as const) {
    t.is(connect(ip, isVerified), allowed, ip);
    clock.nowMs += advanceMs;
  }
  const dialed = Array.from({ length: 1_000 }, (_, port) => limit.tryDialBack(`https://c:${port}`));
  t.is(dialed.filter(Boolean).length, 32);
});
