/** Failed dials of peers. */
import test from "ava";
import { createDialer } from "../../src/peers/handshake/dialer.js";
import { createPeerClient } from "../../src/peers/handshake/client.js";
import { resolveEndpoint } from "../../src/peers/address-book/endpoint.js";
import { createDialRateLimit } from "../../src/peers/handshake/dial-rate-limit.js";
import { createPeerBook } from "../../src/peers/address-book/peer-book.js";
import { CallError } from "../../src/rpc/channel.js";
import { testKey } from "../helpers/chain/keys.js";

const endpoint = "https://198.51.100.1:1";
const head = { number: 0n, hash: "0x1" };

/** The dependencies of a dialer except the address book and the client. */
function depsOf(errors: unknown[]) {
  return {
    self: {
      key: testKey(1),
      genesisHash: "0x1",
      version: "0",
      instanceId: Buffer.alloc(16),
      connectionString: () => "http://198.51.100.2:1",
      endpoint: () => "https://198.51.100.2:2",
      status: () => ({}),
    },
    policy: { tls: true, allowPrivate: false },
    dialRateLimit: createDialRateLimit(1_000),
    readStatus: () => ({ head, lowestBlock: 0n, accepting: true, statedMs: 0, clockOffsetMs: undefined }),
    nowMs: Date.now,
    onKeyElsewhere: () => undefined,
    onVerified: () => undefined,
    onError: (error: unknown) => errors.push(error),
  };
}

/** Dials a peer on which every call fails with this error. */
async function dial(failure: Error) {
  const errors: unknown[] = [];
  const book = createPeerBook({ ownIdentity: testKey(1).publicKey, stored: [], intervalMs: 1_000, nowMs: Date.now });
  book.add(endpoint, "file");
  const client = { call: () => Promise.reject(failure), drop: () => undefined, identityOf: () => undefined };
  const dialer = createDialer({ ...depsOf(errors), book, client });
  await dialer.dial(endpoint, 0);
  return { errors, entry: book.get(endpoint)! };
}

test("an internal error is reported, and does not count against the peer", async (t) => {
  const bug = new TypeError("undefined is not a function");
  const { errors, entry } = await dial(bug);
  t.deepEqual(errors, [bug]);
  t.like(entry, { failures: 0, message: undefined });
});

test("a peer that does not respond, or rejects this node, is not reported as an error", async (t) => {
  const silent = await dial(new CallError("no answer", false));
  t.deepEqual(silent.errors, []);
  t.like(silent.entry, { failures: 1, message: undefined });
  const refusing = await dial(new CallError("another network", true));
  t.deepEqual(refusing.errors, []);
  t.like(refusing.entry, { failures: 1, message: "The peer rejected this node: another network" });
});

test("a name that cannot be resolved counts as a failure, and the peer stays verified", async (t) => {
  const named = "https://no-such-name.invalid:1";
  const now = 1_000_000;
  const verified = { identity: testKey(5).publicKey, connectionString: "http://a.test:1", verifiedMs: now };
  const book = createPeerBook({
    ownIdentity: testKey(1).publicKey,
    stored: [{ ...verified, endpoint: named, origin: "handshake", lastSeenMs: now }],
    intervalMs: 1_000,
    nowMs: () => now,
  });
  book.add("https://no-such-name.invalid:2", "handshake");
  const client = createPeerClient({
    openChannel: () => Promise.reject(new Error("Nobody was to be called.")),
    resolve: (asked) => resolveEndpoint(asked, { tls: true, allowPrivate: false }),
    expectedIdentity: () => undefined,
    deadlineMs: 10_000,
  });
  const errors: unknown[] = [];
  const dialer = createDialer({ ...depsOf(errors), book, client });
  const due = book.due(10);
  t.is(due.length, 2);
  await Promise.all(due.map((peer) => dialer.dial(peer, 0)));
  t.deepEqual(errors, []);
  t.like(book.get(named), { ...verified, failures: 1, message: undefined });
  t.true(book.get(named)!.nextTryMs > now);
  t.like(book.get("https://no-such-name.invalid:2"), { failures: 1, message: undefined });
  t.true(book.list()[0]!.verification.status);
});
