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
      const entry = { name, source, sender, nonce: BigInt(nonce), sizeBytes };
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
    flowCount: (): number => queue.flowCount(),
    select: (count: number, bytes = Infinity): Entry[] => queue.select({ count, bytes }, (ofSender) => ofSender),
  };
}

type Pool = ReturnType<typeof createPool>;

const names = (entries: readonly Entry[]): string[] => entries.map(({ name }) => name);

/** Creates a generator of pseudorandom numbers from 0 to 1; equal seeds yield equal numbers. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const slotsIn = (entries: readonly Entry[]): number => entries.reduce((sum, entry) => sum + slotsOf(entry), 0);

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
 * @returns position of the honest transaction in the fair order, slots ahead of it, number of sources, and number of
 * senders at its source.
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
  const order = pool.select(Infinity);
  const position = order.indexOf(honest);
  return {
    position,
    slotsAhead: slotsIn(order.slice(0, position)),
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
    const { position, slotsAhead, sources } = positionOfHonest(seed, "home", sizeOf);
    t.true(position >= 0 && position < sources, `seed ${seed}: position ${position} of ${sources}`);
    // One slot of each source, and one large transaction that was due.
    t.true(slotsAhead <= sources + slotsOf({ sizeBytes: 1_300_000 }), `seed ${seed}: ${slotsAhead} slots ahead`);
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

/** Adds three transactions of 1 MB for each of several names, and serves some of them in fair order. */
function serveLarge(pool: Pool, add: (name: string, nonce: number) => void, count: number, servedCount: number): void {
  for (let i = 0; i < count; i++) {
    [1, 2, 3].forEach((nonce) => add(`o${i}`, nonce));
  }
  for (let i = 0; i < servedCount; i++) {
    pool.select(1).forEach((entry) => pool.remove(entry));
  }
}

for (const count of [20, 60]) {
  test(`a small transaction of a new source precedes the large ones of ${count} sources`, (t) => {
    for (let servedCount = 0; servedCount < 3 * count; servedCount++) {
      const pool = createPool();
      serveLarge(pool, (name, nonce) => pool.add(name, name, nonce, 1_000_000), count, servedCount);
      const honest = [pool.add("home", "honest", 1), pool.add("home", "honest", 2)];
      t.is(pool.select(1)[0], honest[0], `after ${servedCount}`);
    }
  });

  test(`a small transaction of a new sender precedes the large ones of ${count} senders at its source`, (t) => {
    for (let servedCount = 0; servedCount < 3 * count; servedCount++) {
      const pool = createPool();
      serveLarge(pool, (name, nonce) => pool.add("home", name, nonce, 1_000_000), count, servedCount);
      const honest = pool.add("home", "honest", 1);
      t.is(pool.select(1)[0], honest, `after ${servedCount}`);
    }
  });
}

for (const level of ["source", "sender"] as const) {
  test(`a ${level} that was served ahead, goes empty and returns waits until virtual time is there`, (t) => {
    const pool = createPool();
    const add = (name: string, nonce: number, sizeBytes?: number): Entry =>
      pool.add(level === "source" ? name : "a", name, nonce, sizeBytes);
    const large = add("x", 1, 1_000_000);
    // The other transactions arrive while the large one is getting into a block.
    for (let nonce = 1; nonce <= 500; nonce++) {
      add("y", nonce);
    }
    pool.remove(large);
    const returned = add("x", 2);
    const newcomer = add("z", 1);
    const order = pool.select(Infinity);
    // Virtual time is half of what x was served, since there were two flows.
    t.true(order.indexOf(returned) > slotsOf(large) / 2, `position ${order.indexOf(returned)}`);
    t.true(order.indexOf(newcomer) <= 2, `position ${order.indexOf(newcomer)}`);
  });
}

test("a source gains nothing from transactions that could not be selected for a while", (t) => {
  const pool = createPool();
  for (let nonce = 1; nonce <= 50; nonce++) {
    pool.add("waits", "x", nonce);
  }
  for (let nonce = 1; nonce <= 500; nonce++) {
    pool.add("a", "y", nonce);
    pool.add("b", "z", nonce);
  }
  for (const entry of pool.select(Infinity).filter(({ source }) => source !== "waits")) {
    if (entry.nonce <= 400) {
      pool.remove(entry);
    }
  }
  const sources = pool.select(30).map(({ source }) => source);
  for (const source of ["waits", "a", "b"]) {
    t.true(Math.abs(sources.filter((one) => one === source).length - 10) <= 1, `${source}: ${sources.join(" ")}`);
  }
});

test("sources with transactions of any size get equal numbers of slots, and none gains by going empty", (t) => {
  const pool = createPool();
  const served = new Map<string | undefined, number>();
  const sizes = { small: 200, medium: 40_000, large: 300_000, huge: 1_000_000, returning: 200, single: 1_000_000 };
  let nonce = 0;
  const blocks = 100;
  for (let block = 0; block < blocks; block++) {
    for (const [source, sizeBytes] of Object.entries(sizes)) {
      const limit = { small: 1_000, single: 1 }[source] ?? 30;
      for (let i = [...pool.pending].filter((entry) => entry.source === source).length; i < limit; i++) {
        // The returning source goes empty with each block, and splits its transactions among new senders.
        pool.add(source, source === "returning" ? `fresh ${nonce}` : source, ++nonce, sizeBytes);
      }
    }
    for (const entry of pool.select(1_000, 3 * 1024 * 1024)) {
      served.set(entry.source, (served.get(entry.source) ?? 0) + slotsOf(entry));
      pool.remove(entry);
    }
  }
  const of = (source: string): number => served.get(source) ?? 0;
  const largest = slotsOf({ sizeBytes: sizes.huge });
  for (const source of ["medium", "large", "huge"]) {
    t.true(Math.abs(of(source) - of("small")) <= 2 * largest, `${source}: ${of(source)}, small: ${of("small")}`);
  }
  for (const source of ["returning", "single"]) {
    t.true(of(source) <= of("small") + largest, `${source}: ${of(source)}, small: ${of("small")}`);
  }
});

test("flows without pending transactions are dropped, while a large transaction waits and after all were served", (t) => {
  const pool = createPool();
  const large = pool.add("home", "honest", 1, 100_000);
  let most = 0;
  for (let i = 0; i < 20_000 && pool.pending.has(large); i++) {
    pool.add(`o${i}`, `s${i}`, 1);
    pool.add("home", `h${i}`, 1);
    pool.select(2).forEach((entry) => pool.remove(entry));
    most = Math.max(most, pool.flowCount());
  }
  t.false(pool.pending.has(large));
  // Idle flows are ahead by what the large transaction lags behind, on average by half a slot each.
  t.true(most <= 8 * slotsOf(large), `${most} flows`);
  while (pool.pending.size > 0) {
    pool.select(Infinity).forEach((entry) => pool.remove(entry));
  }
  t.deepEqual(pool.select(1), []);
  t.is(pool.flowCount(), 0);
});
