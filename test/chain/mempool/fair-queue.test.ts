/** Fair order of pending transactions between sources, and between the senders of a source. */
import test from "ava";
import { createFairQueue, inPortions, slotsOf, type QueuedTransaction } from "../../../src/chain/mempool/fair-queue.js";

interface Entry extends QueuedTransaction {
  readonly name: string;
}

/** Creates an empty pool of pending transactions. */
function createPool() {
  const queue = createFairQueue<Entry>();
  const pending = new Set<Entry>();
  /** Source of each sender: that of the first transaction since none of its transactions was pending. */
  const sourceOf = new Map<string, string | undefined>();
  return {
    pending,
    sourceOf,
    add(source: string | undefined, sender: string, nonce: number, sizeBytes = 200): Entry {
      const name = `${source ?? "own"} ${sender} ${nonce}`;
      const entry = { name, source, sender, nonce: BigInt(nonce), sizeBytes, startTimes: { source: 0, sender: 0 } };
      queue.add(entry);
      sourceOf.set(sender, sourceOf.has(sender) ? sourceOf.get(sender) : source);
      pending.add(entry);
      return entry;
    },
    remove(entry: Entry, isServed = true): void {
      pending.delete(entry);
      queue.remove(entry, isServed);
      if (queue.ofSender(entry.sender).length === 0) {
        sourceOf.delete(entry.sender);
      }
    },
    select: (count: number, bytes = Infinity): Entry[] => queue.select({ count, bytes }, (ofSender) => ofSender),
  };
}

const names = (entries: readonly Entry[]): string[] => entries.map(({ name }) => name);

/** Creates a generator of pseudorandom numbers from 0 to 1; equal seeds yield equal numbers. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

test("sources alternate, and so do the senders of each source", (t) => {
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

test("transactions of a sender are selected in nonce order, whatever their sources", (t) => {
  const pool = createPool();
  for (const [source, nonce] of [
    ["a", 7],
    ["b", 3],
    ["a", 5],
    ["c", 6],
    ["b", 4],
  ] as const) {
    pool.add(source, "x", nonce);
  }
  pool.add("c", "y", 1);
  const ofX = pool.select(10).filter(({ sender }) => sender === "x");
  t.deepEqual(
    ofX.map(({ nonce }) => nonce),
    [3n, 4n, 5n, 6n, 7n],
  );
});

test("a selection respects the limits, but includes at least one transaction", (t) => {
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

/**
 * Adds transactions at random, some of which are served and some expire, then an honest one, and then more.
 *
 * @param honestSource source of the honest transaction; undefined for one of the sources of the others.
 * @returns position of the honest transaction in the fair order, number of sources, and number of senders at its
 * source.
 */
function positionOfHonest(seed: number, honestSource: string | undefined, sizeOf: (random: () => number) => number) {
  const random = createRandom(seed);
  const below = (n: number): number => Math.floor(random() * n);
  const pool = createPool();
  let nonce = 0;
  const sourceCount = 1 + below(8);
  const flood = (): Entry => pool.add(`o${below(sourceCount)}`, `s${below(6)}`, ++nonce, sizeOf(random));
  for (let block = 0; block < 12; block++) {
    for (let i = below(120); i > 0; i--) {
      flood();
    }
    pool.select(1 + below(60), 3 * 1024 * 1024).forEach((entry) => pool.remove(entry));
    const expired = [...pool.pending].filter(() => random() < 0.1);
    expired.forEach((entry) => pool.remove(entry, false));
  }
  const source = honestSource ?? `o${below(sourceCount)}`;
  const honest = pool.add(source, "honest", 1);
  for (let i = below(200); i > 0; i--) {
    flood();
  }
  const sources = [...pool.sourceOf.values()];
  return {
    position: pool.select(Infinity).indexOf(honest),
    sources: new Set(sources).size,
    senders: sources.filter((of) => of === source).length,
  };
}

test("a transaction waits for at most one transaction of each source, times the senders of its own source", (t) => {
  for (let seed = 1; seed <= 100; seed++) {
    const { position, sources, senders } = positionOfHonest(seed, undefined, () => 300);
    const message = `seed ${seed}: position ${position} of ${sources} × ${senders}`;
    t.true(position >= 0 && position < sources * senders, message);
  }
});

test("large transactions delay only their own source", (t) => {
  for (let seed = 1; seed <= 100; seed++) {
    const sizeOf = (random: () => number): number => (random() < 0.2 ? 1 + Math.floor(random() * 1_300_000) : 300);
    const { position, sources } = positionOfHonest(seed, "home", sizeOf);
    t.true(position >= 0 && position < sources, `seed ${seed}: position ${position} of ${sources}`);
  }
});

test("each pending transaction is selected once, those of a sender in nonce order", (t) => {
  for (let seed = 1; seed <= 40; seed++) {
    const random = createRandom(seed);
    const below = (n: number): number => Math.floor(random() * n);
    const pool = createPool();
    for (let i = 0; i < 300; i++) {
      pool.add(below(9) === 0 ? undefined : `o${below(5)}`, `s${below(7)}`, i, 1 + below(20_000));
      if (below(3) === 0) {
        pool.select(1 + below(3)).forEach((entry) => pool.remove(entry));
      }
    }
    const selected = pool.select(Infinity);
    t.deepEqual(names(selected).sort(), names([...pool.pending]).sort());
    const last = new Map<string, bigint>();
    for (const { sender, nonce } of selected) {
      t.true((last.get(sender) ?? -1n) < nonce);
      last.set(sender, nonce);
    }
  }
});

test("a large transaction does not starve while small ones keep arriving from all sources", (t) => {
  const pool = createPool();
  let nonce = 0;
  const flood = (): void => {
    for (const [source, sender] of [
      ["a", "x"],
      ["b", "y"],
      ["c", `fresh ${nonce}`],
      ["home", "z"],
      ["home", `fresh ${nonce}`],
    ] as const) {
      for (let i = 0; i < 400; i++) {
        pool.add(source, sender, ++nonce);
      }
    }
  };
  flood();
  const large = pool.add("home", "honest", 1, 1_000_000);
  let blocks = 0;
  while (pool.pending.has(large)) {
    pool.select(1_000, 3 * 1024 * 1024).forEach((entry) => pool.remove(entry));
    flood();
    blocks++;
    // The transaction costs 326 slots. Its source is one of four, its sender one of up to eight there.
    t.true(blocks <= (4 * 8 * slotsOf(large)) / 1_000);
  }
});

test("a source without pending transactions is forgotten, and gains no advantage when it returns", (t) => {
  const pool = createPool();
  pool.remove(pool.add("a", "x", 1, 500_000));
  const ofB = [1, 2, 3].map((nonce) => pool.add("b", "y", nonce));
  pool.remove(ofB[0]!);
  pool.add("a", "x", 2);
  t.deepEqual(names(pool.select(2)), ["b y 2", "a x 2"]);
});
