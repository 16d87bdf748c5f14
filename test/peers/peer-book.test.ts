/** The address book: verification, penalties, eviction and size limits. */
import test from "ava";
import type { VerifiedStatus } from "../../src/peers/address-book/status.js";
import { peerReasons } from "../../src/peers/address-book/peer-reasons.js";
import { createPeerBook } from "../../src/peers/address-book/peer-book.js";

const status: VerifiedStatus = {
  ...{ head: { number: 3n, hash: "0x3" }, lowestBlock: 0n, accepting: true, statedMs: 0, clockOffsetMs: undefined },
};
const identity = (n: number): string => `0x${n.toString(16).padStart(64, "0")}`;
const endpoint = (n: number): string => `https://198.51.100.1:${n}`;
const invalid = "It sent an invalid block.";

/** Creates a book with verified peers, which the peers file names. */
function setUp(...verified: readonly number[]) {
  const clock = { nowMs: 1_000_000 };
  const book = createPeerBook({ ownIdentity: identity(0), stored: [], intervalMs: 1_000, nowMs: () => clock.nowMs });
  const prove = (n: number, as = identity(n), announced = endpoint(n)) => {
    const proof = { identity: as, connectionString: `http://198.51.100.1:${n}`, announced, instanceId: "" };
    return book.recordHandshake(endpoint(n), { ...proof, status });
  };
  for (const n of verified) {
    book.add(endpoint(n), "file");
    prove(n);
  }
  return { clock, book, prove };
}

test("holds at most 1,000 of 10,000 gossiped addresses, lists none, and dials 8 at a time", (t) => {
  const { clock, book } = setUp();
  for (let n = 1; n <= 10_000; n++) {
    book.add(endpoint(n), "gossip");
  }
  t.is(book.entries().length, 1_000);
  t.deepEqual(book.list(), []);
  t.true(book.isEmpty());
  t.is(book.due(100).length, 8);
  // Addresses that never respond are removed.
  for (let tick = 0; tick < 2_000; tick++) {
    clock.nowMs += 30_000;
    book.due(100).forEach((dialed) => book.recordFailure(dialed, "no response"));
  }
  t.deepEqual(book.entries(), []);
});

test("unverified addresses from handshakes evict each other, but no other entries", (t) => {
  const { book, prove } = setUp();
  book.add(endpoint(1), "handshake");
  t.is(prove(1), undefined);
  book.add(endpoint(2), "file");
  for (let n = 10; n < 1_000; n++) {
    book.add(endpoint(n), "handshake");
  }
  t.is(book.entries().length, 66);
  t.truthy(book.get(endpoint(1)));
  t.truthy(book.get(endpoint(2)));
});

test("1,000 verified peers stay; a new one replaces a peer not seen for a day", (t) => {
  const { clock, book, prove } = setUp();
  for (let n = 1; n <= 1_000; n++) {
    book.add(endpoint(n), "handshake");
    prove(n);
  }
  t.false(book.add(endpoint(2_000), "handshake"));
  t.true(book.add(endpoint(2_001), "operator"));
  clock.nowMs += 25 * 3_600_000;
  for (let n = 2; n <= 1_000; n++) {
    book.recordStatus(endpoint(n), status);
  }
  t.true(book.add(endpoint(2_000), "handshake"));
  t.is(book.get(endpoint(1)), undefined);
});

test("dials all peers, the one dialed longest ago first", (t) => {
  const { clock, book } = setUp();
  for (let n = 1; n <= 250; n++) {
    book.add(endpoint(n), "file");
  }
  const dialed = new Set<string>();
  for (let tick = 0; tick < 3; tick++) {
    const due = book.due(100);
    t.true(due.length <= 100);
    due.forEach((peer) => {
      dialed.add(peer);
      book.recordStatus(peer, status);
    });
    clock.nowMs += 1_000;
  }
  t.is(dialed.size, 250);
});

test("backs off from a failing peer for up to 60 s, and trusts it again when it responds", (t) => {
  const { clock, book, prove } = setUp(1);
  t.is(book.healthy().length, 1);
  const pauses: number[] = [];
  for (let i = 0; i < 10; i++) {
    book.recordFailure(endpoint(1), "no response");
    pauses.push(book.get(endpoint(1))!.nextTryMs - clock.nowMs);
    t.deepEqual(book.due(10), []);
    clock.nowMs += 60_001;
    t.deepEqual(book.due(10), [endpoint(1)]);
  }
  pauses.forEach((pauseMs, i) => {
    const fullMs = Math.min(60_000, 1_000 * 2 ** i);
    t.true(pauseMs >= fullMs / 2 && pauseMs <= fullMs, `${pauseMs}`);
  });
  t.deepEqual(book.healthy(), []);
  t.is(book.list()[0]!.status.online, false);
  prove(1);
  t.like(book.list()[0], { status: { online: true, ready: true }, verification: { status: true, message: undefined } });
});

test("a second endpoint of an identity is rejected while the first responds, and replaces it otherwise", (t) => {
  const { book, prove } = setUp();
  book.add(endpoint(1), "handshake");
  book.add(endpoint(2), "handshake");
  prove(1, identity(7));
  t.regex(prove(2, identity(7)) ?? "", /belongs to the peer at https:\/\/198\.51\.100\.1:1, which responds/);
  t.is(book.verified(identity(7))!.endpoint, endpoint(1));
  book.recordFailure(endpoint(1), "no response");
  book.add(endpoint(2), "handshake");
  t.is(prove(2, identity(7)), undefined);
  t.is(book.verified(identity(7))!.endpoint, endpoint(2));
  t.is(book.get(endpoint(1)), undefined);
});

test("rejects its own key, an unexpected key, and another announced address unless an operator added it", (t) => {
  const { book, prove } = setUp();
  book.add(endpoint(1), "file", identity(9));
  t.is(prove(1), peerReasons.unexpectedKey(endpoint(1), identity(1), identity(9), true));
  book.add(endpoint(2), "gossip");
  t.regex(prove(2, identity(0)) ?? "", /this node's own address/);
  book.add(endpoint(3), "gossip");
  t.regex(prove(3, identity(3), endpoint(4)) ?? "", /announces the address https:\/\/198\.51\.100\.1:4/);
  book.add(endpoint(5), "operator");
  t.is(prove(5, identity(5), endpoint(6)), undefined);
  t.deepEqual(book.sample(10, ""), [{ endpoint: endpoint(6), identity: identity(5) }]);
});

test("a penalized peer is not healthy for 1, 2, then 4 minutes", (t) => {
  const { clock, book } = setUp(1);
  for (const minutes of [1, 2, 4]) {
    book.penalize(endpoint(1), invalid);
    book.recordStatus(endpoint(1), status);
    t.deepEqual(book.healthy(), []);
    t.like(book.list()[0], { verification: { status: true, message: invalid }, status: { ready: false } });
    clock.nowMs += minutes * 60_000 - 1;
    t.deepEqual(book.healthy(), []);
    clock.nowMs += 1;
    t.is(book.healthy().length, 1);
  }
  // The reason stays for one more interval, because the next attempt may fail as well.
  book.recordStatus(endpoint(1), status);
  t.is(book.list()[0]!.verification.message, invalid);
  clock.nowMs += 1_000;
  book.recordStatus(endpoint(1), status);
  t.like(book.list()[0], { verification: { message: undefined }, status: { ready: true } });
});

test("says why it uses none of its peers, but not of gossip", (t) => {
  const { book, prove } = setUp();
  t.is(book.whyNoneUsed(), undefined);
  book.add(endpoint(9), "gossip");
  t.is(book.whyNoneUsed(), undefined);
  [1, 2, 3].forEach((number) => book.add(endpoint(number), "operator"));
  book.recordFailure(endpoint(2), "connection refused");
  const unseen = `${endpoint(1)}: The peer has not responded yet.`;
  t.is(book.whyNoneUsed(), `${unseen} ${endpoint(2)}: connection refused (and 1 others)`);
  t.is(prove(3), undefined);
  t.is(book.whyNoneUsed(), undefined);
});

test("a paused peer is healthy again after 10 s, however often it was paused", (t) => {
  const { clock, book } = setUp(1);
  const silent = "It sent no block for 10 s.";
  for (let time = 0; time < 5; time++) {
    book.pause(endpoint(1), silent);
    t.deepEqual(book.healthy(), []);
    t.like(book.list()[0], { verification: { status: true, message: silent } });
    clock.nowMs += 10_000;
    t.is(book.healthy().length, 1);
  }
  book.penalize(endpoint(1), invalid);
  book.pause(endpoint(1), silent);
  clock.nowMs += 59_999;
  t.deepEqual(book.healthy(), [], "a pause does not shorten a penalty");
});

test("the highest block counts only healthy peers, at any time", (t) => {
  const { clock, book, prove } = setUp();
  t.is(book.highestBlock(), undefined);
  book.add(endpoint(1), "file");
  t.is(book.highestBlock(), undefined);
  prove(1);
  t.is(book.highestBlock(), 3n);
  book.add(endpoint(2), "file");
  prove(2);
  book.recordStatus(endpoint(2), { ...status, head: { number: 9n, hash: "0x9" } });
  t.is(book.highestBlock(), 9n);
  book.penalize(endpoint(2), invalid);
  t.is(book.highestBlock(), 3n);
  clock.nowMs += 60_000;
  t.is(book.highestBlock(), 9n);
  book.recordFailure(endpoint(2), "no response");
  t.is(book.highestBlock(), 3n);
  book.remove(endpoint(1));
  t.is(book.highestBlock(), undefined);
});

test("stores a changed peer, but not every status response", (t) => {
  const { clock, book } = setUp(1);
  t.is(book.drainChanges().saved.length, 1);
  clock.nowMs += 1_000;
  book.recordStatus(endpoint(1), status);
  t.deepEqual(book.drainChanges(), { saved: [], removed: [] });
  clock.nowMs += 400_000;
  book.recordStatus(endpoint(1), status);
  const changes = book.drainChanges();
  t.is(changes.saved.length, 1);
  book.restoreChanges(changes);
  t.is(book.drainChanges().saved.length, 1);
  book.remove(endpoint(1));
  t.deepEqual(book.drainChanges(), { saved: [], removed: [endpoint(1)] });
});

test("a clock that is set back an hour blocks no peer", (t) => {
  const { clock, book } = setUp(1, 2, 3);
  const rightMs = clock.nowMs;
  clock.nowMs += 3_600_000;
  t.is(book.due(10).length, 3);
  book.penalize(endpoint(1), "Its block was in the future.");
  book.recordFailure(endpoint(2), "no response");
  clock.nowMs = rightMs;
  t.deepEqual(book.due(10).sort(), [endpoint(1), endpoint(2), endpoint(3)]);
  t.true(book.healthy().some((entry) => entry.endpoint === endpoint(1)));
});
