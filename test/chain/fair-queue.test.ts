/** Whose turn it is, whatever others have waiting. */
import test from "ava";
import {
  createVirtualTime,
  inPortions,
  slotsOf,
  selectFair,
  type QueuedTransaction,
} from "../../src/chain/mempool/fair-queue.js";

interface Entry extends QueuedTransaction {
  readonly name: string;
  readonly origin: string | undefined;
}

/** A pool that chance fills and empties. */
function createPool() {
  const line = createVirtualTime();
  const waiting = new Set<Entry>();
  return {
    waiting,
    add(origin: string | undefined, sender: string, nonce: number, sizeBytes = 200): Entry {
      const name = `${origin ?? "own"} ${sender} ${nonce}`;
      const entry = { name, origin, sender, nonce: BigInt(nonce), sizeBytes, startTag: line.add(origin, sender) };
      waiting.add(entry);
      return entry;
    },
    leave(entry: Entry, isServed = true): void {
      waiting.delete(entry);
      line.remove(entry, isServed);
    },
    select: (count: number, bytes = Infinity): Entry[] => selectFair(waiting, line, { count, bytes }),
    line,
  };
}

const names = (entries: readonly Entry[]): string[] => entries.map(({ name }) => name);

/** The same numbers each time, from 0 to 1. */
function createChance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

test("origins take turns, and so do the senders of each", (t) => {
  const pool = createPool();
  for (const nonce of [1, 2, 3]) {
    pool.add("a", "x", nonce);
  }
  pool.add("a", "y", 1);
  pool.add("b", "z", 1);
  pool.add(undefined, "me", 1);
  t.deepEqual(names(pool.select(10)), ["a x 1", "b z 1", "own me 1", "a y 1", "a x 2", "a x 3"]);
  t.deepEqual(names(pool.select(2)), ["a x 1", "b z 1"]);
});

test("a sender's are in the order of their nonces, wherever they came from", (t) => {
  const pool = createPool();
  for (const [origin, nonce] of [
    ["a", 7],
    ["b", 3],
    ["a", 5],
    ["c", 6],
    ["b", 4],
  ] as const) {
    pool.add(origin, "x", nonce);
  }
  pool.add("c", "y", 1);
  const ofX = pool.select(10).filter(({ sender }) => sender === "x");
  t.deepEqual(
    ofX.map(({ nonce }) => nonce),
    [3n, 4n, 5n, 6n, 7n],
  );
});

test("what is selected stays within its bounds, and is something in any case", (t) => {
  const pool = createPool();
  pool.add("a", "x", 1, 5_000);
  pool.add("a", "x", 2, 2_000);
  pool.add("a", "x", 3, 2_000);
  t.is(pool.select(10, 1).length, 1);
  t.is(pool.select(10, 7_000).length, 2);
  t.is(pool.select(10, 8_999).length, 2);
  t.is(pool.select(10, 9_000).length, 3);
  t.deepEqual(createPool().select(10), []);
  const portions = [...inPortions(pool.select(10), { count: 2, bytes: 4_000 })];
  t.deepEqual(
    portions.map((portion) => portion.length),
    [1, 2],
  );
});

/** Blocks are made and transactions come for a while, then an honest one, and then more; gives its place. */
function placeOfHonest(seed: number, origin: string | undefined, sizeOf: (chance: () => number) => number) {
  const chance = createChance(seed);
  const below = (n: number): number => Math.floor(chance() * n);
  const pool = createPool();
  let nonce = 0;
  const origins = 1 + below(8);
  const flood = (): Entry => pool.add(`o${below(origins)}`, `s${below(6)}`, ++nonce, sizeOf(chance));
  for (let block = 0; block < 12; block++) {
    for (let i = below(120); i > 0; i--) {
      flood();
    }
    pool.select(1 + below(60), 3 * 1024 * 1024).forEach((entry) => pool.leave(entry));
    // Some expire.
    [...pool.waiting].filter(() => chance() < 0.1).forEach((entry) => pool.leave(entry, false));
  }
  const home = origin ?? `o${below(origins)}`;
  const honest = pool.add(home, "honest", 1);
  for (let i = below(200); i > 0; i--) {
    flood();
  }
  const lanes = [...pool.waiting].map(({ startTag, sender }) => ({ lane: startTag.sourceKey, sender }));
  return {
    place: pool.select(Infinity).indexOf(honest),
    origins: new Set(lanes.map(({ lane }) => lane)).size,
    senders: new Set(lanes.filter(({ lane }) => lane === home).map(({ sender }) => sender)).size,
  };
}

test("whatever waits, the next one of a sender is within the first places: one for each origin and sender of its own", (t) => {
  for (let seed = 1; seed <= 100; seed++) {
    const { place, origins, senders } = placeOfHonest(seed, undefined, () => 300);
    t.true(place >= 0 && place < origins * senders, `seed ${seed}: place ${place} of ${origins} × ${senders}`);
  }
});

test("what weighs more costs its own origin turns, and nobody else any", (t) => {
  for (let seed = 1; seed <= 100; seed++) {
    const sizeOf = (chance: () => number): number => (chance() < 0.2 ? 1 + Math.floor(chance() * 1_300_000) : 300);
    const { place, origins } = placeOfHonest(seed, "home", sizeOf);
    t.true(place >= 0 && place < origins, `seed ${seed}: place ${place} of ${origins}`);
  }
});

test("everything that waits is selected once, each sender's by nonce, whatever came and went before", (t) => {
  for (let seed = 1; seed <= 40; seed++) {
    const chance = createChance(seed);
    const below = (n: number): number => Math.floor(chance() * n);
    const pool = createPool();
    for (let i = 0; i < 300; i++) {
      pool.add(below(9) === 0 ? undefined : `o${below(5)}`, `s${below(7)}`, i, 1 + below(20_000));
      if (below(3) === 0) {
        pool.select(1 + below(3)).forEach((entry) => pool.leave(entry));
      }
    }
    const selected = pool.select(Infinity);
    t.deepEqual(names(selected).sort(), names([...pool.waiting]).sort());
    const last = new Map<string, bigint>();
    for (const { sender, nonce } of selected) {
      t.true((last.get(sender) ?? -1n) < nonce);
      last.set(sender, nonce);
    }
  }
});

test("a large one is served in the end, though small ones keep coming from others and from its own origin", (t) => {
  const pool = createPool();
  let nonce = 0;
  const flood = (): void => {
    for (const [origin, sender] of [
      ["a", "x"],
      ["b", "y"],
      ["c", `fresh ${nonce}`],
      ["home", "z"],
      ["home", `fresh ${nonce}`],
    ] as const) {
      for (let i = 0; i < 400; i++) {
        pool.add(origin, sender, ++nonce);
      }
    }
  };
  flood();
  const large = pool.add("home", "honest", 1, 1_000_000);
  let blocks = 0;
  while (pool.waiting.has(large)) {
    pool.select(1_000, 3 * 1024 * 1024).forEach((entry) => pool.leave(entry));
    flood();
    blocks++;
    // One of four origins, and one of up to eight senders of its own: so much comes before what weighs 326 places.
    t.true(blocks <= (4 * 8 * slotsOf(large)) / 1_000);
  }
});

test("who has nothing waiting is forgotten, and gains nothing by having been away", (t) => {
  const pool = createPool();
  const first = pool.add("a", "x", 1, 500_000);
  pool.leave(first);
  t.is(pool.line.of("a"), 0);
  const stays = [1, 2, 3].map((nonce) => pool.add("b", "y", nonce));
  pool.leave(stays[0]!);
  pool.add("a", "x", 2);
  t.deepEqual(names(pool.select(2)), ["b y 2", "a x 2"]);
});
