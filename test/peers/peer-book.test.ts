/** The address book: what it believes, what it forgets, and how much it holds. */
import test from "ava";
import type { VerifiedStatus } from "../../src/peers/address-book/status.js";
import { createPeerBook } from "../../src/peers/address-book/peer-book.js";

const status: VerifiedStatus = { head: { number: 3n, hash: "0x3" }, accepting: true, statedMs: 0 };
const identity = (n: number): string => `0x${n.toString(16).padStart(64, "0")}`;
const endpoint = (n: number): string => `https://198.51.100.1:${n}`;

function setUp() {
  const clock = { nowMs: 1_000_000 };
  const book = createPeerBook({ ownIdentity: identity(0), stored: [], intervalMs: 1_000, nowMs: () => clock.nowMs });
  const prove = (n: number, as = identity(n), announced = endpoint(n)) =>
    book.recordHandshake(endpoint(n), {
      identity: as,
      connectionString: `http://198.51.100.1:${n}`,
      announced,
      instanceId: "",
      status,
    });
  return { clock, book, prove };
}

test("10,000 addresses that come by gossip leave the book bounded, unseen, and dialed a few at a time", (t) => {
  const { clock, book } = setUp();
  for (let n = 1; n <= 10_000; n++) {
    book.add(endpoint(n), "gossip");
  }
  t.is(book.entries().length, 1_000);
  t.deepEqual(book.list(), []);
  t.true(book.isEmpty());
  t.is(book.due(100).length, 8);
  // Those that never answer make room, and are forgotten.
  for (let tick = 0; tick < 2_000; tick++) {
    clock.nowMs += 30_000;
    book.due(100).forEach((asked) => book.recordFailure(asked));
  }
  t.deepEqual(book.entries(), []);
});

test("those who name themselves and are not verified push out each other, and nobody else", (t) => {
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

test("a thousand verified peers stay; another one has no room until one was not seen for a day", (t) => {
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

test("of many peers each has its turn, the longest not dialed first", (t) => {
  const { clock, book } = setUp();
  for (let n = 1; n <= 250; n++) {
    book.add(endpoint(n), "file");
  }
  const asked = new Set<string>();
  for (let tick = 0; tick < 3; tick++) {
    const due = book.due(100);
    t.true(due.length <= 100);
    due.forEach((one) => {
      asked.add(one);
      book.recordStatus(one, status);
    });
    clock.nowMs += 1_000;
  }
  t.is(asked.size, 250);
});

test("a peer that fails is left alone for longer and longer, and believed again when it answers", (t) => {
  const { clock, book, prove } = setUp();
  book.add(endpoint(1), "file");
  prove(1);
  t.is(book.healthy().length, 1);
  const pauses: number[] = [];
  for (let i = 0; i < 10; i++) {
    book.recordFailure(endpoint(1));
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

test("an identity is at one place: refused elsewhere while that answers, moved when it does not", (t) => {
  const { book, prove } = setUp();
  book.add(endpoint(1), "handshake");
  book.add(endpoint(2), "handshake");
  prove(1, identity(7));
  t.regex(prove(2, identity(7)) ?? "", /belongs to the peer at https:\/\/198\.51\.100\.1:1, which responds/);
  t.is(book.verified(identity(7))!.endpoint, endpoint(1));
  book.recordFailure(endpoint(1));
  book.add(endpoint(2), "handshake");
  t.is(prove(2, identity(7)), undefined);
  t.is(book.verified(identity(7))!.endpoint, endpoint(2));
  t.is(book.get(endpoint(1)), undefined);
});

test("itself, an unexpected key, and one that names itself differently are refused; an operator knows better", (t) => {
  const { book, prove } = setUp();
  book.add(endpoint(1), "file", identity(9));
  t.regex(prove(1) ?? "", /not the expected one/);
  book.add(endpoint(2), "gossip");
  t.regex(prove(2, identity(0)) ?? "", /this node's own address/);
  book.add(endpoint(3), "gossip");
  t.regex(prove(3, identity(3), endpoint(4)) ?? "", /announces the address https:\/\/198\.51\.100\.1:4/);
  book.add(endpoint(5), "operator");
  t.is(prove(5, identity(5), endpoint(6)), undefined);
  t.deepEqual(book.sample(10, ""), [{ endpoint: endpoint(6), identity: identity(5) }]);
});

test("who sent what he should not have is not believed for a while, longer each time", (t) => {
  const { clock, book, prove } = setUp();
  book.add(endpoint(1), "file");
  prove(1);
  for (const minutes of [1, 2, 4]) {
    book.penalize(endpoint(1), "It lied.");
    book.recordStatus(endpoint(1), status);
    t.deepEqual(book.healthy(), []);
    t.like(book.list()[0], { verification: { status: true, message: "It lied." }, status: { ready: false } });
    clock.nowMs += minutes * 60_000 - 1;
    t.deepEqual(book.healthy(), []);
    clock.nowMs += 1;
    t.is(book.healthy().length, 1);
  }
  book.recordStatus(endpoint(1), status);
  t.like(book.list()[0], { verification: { message: undefined }, status: { ready: true } });
});

test("who sent nothing is asked again soon, however often that was", (t) => {
  const { clock, book, prove } = setUp();
  book.add(endpoint(1), "file");
  prove(1);
  for (let time = 0; time < 5; time++) {
    book.pause(endpoint(1), "It sent no block for 10 s.");
    t.deepEqual(book.healthy(), []);
    t.like(book.list()[0], { verification: { status: true, message: "It sent no block for 10 s." } });
    clock.nowMs += 10_000;
    t.is(book.healthy().length, 1);
  }
  book.penalize(endpoint(1), "It lied.");
  book.pause(endpoint(1), "It sent no block for 10 s.");
  clock.nowMs += 59_999;
  t.deepEqual(book.healthy(), [], "a pause ends no distrust");
});

test("the newest block is that of those who are believed, at any moment", (t) => {
  const { clock, book, prove } = setUp();
  t.is(book.highestBlock(), undefined);
  book.add(endpoint(1), "file");
  t.is(book.highestBlock(), undefined);
  prove(1);
  t.is(book.highestBlock(), 3n);
  book.add(endpoint(2), "file");
  prove(2);
  book.recordStatus(endpoint(2), { head: { number: 9n, hash: "0x9" }, accepting: true, statedMs: 0 });
  t.is(book.highestBlock(), 9n);
  book.penalize(endpoint(2), "It lied.");
  t.is(book.highestBlock(), 3n);
  clock.nowMs += 60_000;
  t.is(book.highestBlock(), 9n);
  book.recordFailure(endpoint(2));
  t.is(book.highestBlock(), 3n);
  book.remove(endpoint(1));
  t.is(book.highestBlock(), undefined);
});

test("only what matters is stored: not every answer", (t) => {
  const { clock, book, prove } = setUp();
  book.add(endpoint(1), "file");
  prove(1);
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

test("a clock that is set back an hour keeps nobody from being dialed or believed", (t) => {
  const { clock, book, prove } = setUp();
  for (const n of [1, 2, 3]) {
    book.add(endpoint(n), "file");
    prove(n);
  }
  const rightMs = clock.nowMs;
  clock.nowMs += 3_600_000;
  t.is(book.due(10).length, 3);
  book.penalize(endpoint(1), "It was of the future.");
  book.recordFailure(endpoint(2));
  clock.nowMs = rightMs;
  t.deepEqual(book.due(10).sort(), [endpoint(1), endpoint(2), endpoint(3)]);
  t.true(book.healthy().some((entry) => entry.endpoint === endpoint(1)));
});
