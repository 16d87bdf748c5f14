/** What waits for a block, on both engines: taken while blocks are made, kept over restarts, shared among all who write. */
import test from "ava";
import type { Transaction } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { type Chain, createChain } from "../../src/chain/chain.js";
import { createChainStore } from "../../src/chain/chain-store.js";
import type { Mempool } from "../../src/chain/mempool/mempool.js";
import type { SubmissionSource } from "../../src/chain/mempool/mempool-intake.js";
import { maxPredecessorWaitMs } from "../../src/chain/mempool/sender-order.js";
import type { ChainStore } from "../../src/chain/blocks/store.js";
import type { Database } from "../../src/db/queries/database.js";
import { type State, stateIn } from "../../src/node/chain/transaction-executor.js";
import { RpcError } from "../../src/rpc/errors.js";
import { effectsOn, openTestMempool } from "../helpers/chain/chain.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import { testKey } from "../helpers/chain/keys.js";
import { commit, createPublic, signTransaction, signZk, testNetwork } from "../helpers/chain/transactions.js";
import { until } from "../helpers/nodes/until.js";

const [authority, alice, bob] = [testKey(1), testKey(2), testKey(3)];
const genesis = {
  ...{ text: "{}", hash: testNetwork, timestampMs: 0 },
  ...{ authorities: [authority.publicKey], followers: [], writers: [] },
};

const engines = await prepareEngines();

interface Opened {
  readonly store: ChainStore<State>;
  readonly mempool: Mempool;
  readonly chain: Chain;
}

interface Settings {
  readonly nowMs?: () => number;
  readonly rules?: Parameters<typeof openTestMempool>[2];
  /** The effects of transactions wait for it. */
  readonly gate?: Promise<void>;
  readonly change?: (store: ChainStore<State>) => ChainStore<State>;
}

/** Opens what a node that writes has over a database; again, where it has been before. */
async function start(database: Database, settings: Settings = {}): Promise<Opened> {
  const { nowMs = Date.now, rules, gate, change } = settings;
  const stored = createChainStore(database, stateIn);
  const store = change === undefined ? stored : change(stored);
  if ((await store.head()) === undefined) {
    await store.insertGenesis(genesis);
  }
  const mempool = await openTestMempool(store, nowMs, rules);
  const effects = effectsOn(database, genesis.authorities);
  const chain = createChain({
    ...{ store, mempool, genesis, nowMs },
    head: await store.head(),
    executor: {
      ...effects,
      start(block, state) {
        const begun = effects.start(block, state);
        return {
          prefetch: (transactions) => begun.prefetch(transactions),
          finish: (included) => begun.finish(included),
          async apply(transaction) {
            await gate;
            return await begun.apply(transaction);
          },
        };
      },
    },
    onApplied: () => undefined,
    onUnexpected: () => undefined,
  });
  return { store, mempool, chain };
}

/** A promise that somebody else resolves. */
function createGate() {
  let open = (): void => undefined;
  const promise = new Promise<void>((resolve) => (open = resolve));
  return { promise, open: () => open() };
}

const from = (address: string, isExempt = false): SubmissionSource => ({ source: { address, isExempt } });
const program = (key: typeof alice, nonce: number, json = "{}"): Transaction =>
  signTransaction(key, nonce, createPublic(`p${nonce}`, json));

/** Of a program that there is not: it is rejected when a block is made. */
const deletion = (key: typeof alice, nonce: number): Transaction =>
  signTransaction(key, nonce, { case: "deleteProgram", value: { storageAddress: `stor-${"0".repeat(40)}` } });

async function reasonOf(work: Promise<unknown>): Promise<string | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    if (error instanceof RpcError) {
      return error.reason;
    }
    throw error;
  }
}

for (const engine of engines.names) {
  test(`${engine}: while a block is applied transactions are taken and told of, and nobody waits for it`, async (t) => {
    const database = await engines.open(t, engine);
    const { promise, open } = createGate();
    t.teardown(open);
    const { chain, mempool, store } = await start(database, { gate: promise });
    const first = await chain.submit(program(alice, 1));
    const sealed = chain.produceBlock(authority);
    const hashes: string[] = [];
    for (let nonce = 1; nonce <= 20; nonce++) {
      hashes.push(await chain.submit(program(bob, nonce), from("192.0.2.1")));
      t.deepEqual(await mempool.transactionStatus(hashes.at(-1)!), { status: "pending" });
    }
    t.deepEqual(await mempool.transactionStatus(first), { status: "pending" });
    t.is(await store.pendingCount(), 21);
    t.is((await mempool.oldestPending(50)).length, 21);
    t.is(mempool.stats().count, 21);
    open();
    t.is((await sealed).block!.transactions.length, 1);
    t.is((await chain.produceBlock(authority)).block!.transactions.length, 20);
    t.is(await store.pendingCount(), 0);
  });

  test(`${engine}: what ended between a block and its leaving the mempool is in the block once, and not pending`, async (t) => {
    const database = await engines.open(t, engine);
    const failing = await start(database, {
      change: (store) => ({
        ...store,
        mempool: { ...store.mempool, remove: () => Promise.reject(new Error("the process ends here")) },
      }),
    });
    const transaction = program(alice, 1);
    const good = await failing.chain.submit(transaction);
    const bad = await failing.chain.submit(deletion(alice, 2));
    await failing.chain.produceBlock(authority);
    t.is((await failing.mempool.transactionStatus(good))?.status, "included");
    t.like(await failing.mempool.transactionStatus(bad), {
      status: "rejected",
      reason: "There is no storage program at this address.",
    });
    t.is(
      (await failing.store.transactionStatus(good))?.status,
      "included",
      "what is in a block is, whatever the mempool holds",
    );
    t.is(await failing.store.pendingCount(), 2);

    const { chain, mempool, store } = await start(database);
    t.is((await mempool.transactionStatus(good))?.status, "included");
    t.is(mempool.stats().count, 1);
    t.is((await chain.produceBlock(authority)).block, undefined);
    t.is((await mempool.transactionStatus(bad))?.status, "rejected");
    t.is(await store.pendingCount(), 0);
    t.is(await chain.submit(transaction), good);
    t.is((await database.read.rows((sql) => sql("transactions"))).length, 1);
  });

  test(`${engine}: what could not be taken out at once is taken out later`, async (t) => {
    const database = await engines.open(t, engine);
    let isBroken = true;
    const { chain, mempool, store } = await start(database, {
      change: (whole) => ({
        ...whole,
        mempool: {
          ...whole.mempool,
          remove: (settled) =>
            isBroken ? Promise.reject(new Error("the disk is full")) : whole.mempool.remove(settled),
        },
      }),
    });
    await chain.submit(program(alice, 1));
    await chain.produceBlock(authority);
    t.is(await store.pendingCount(), 1);
    isBroken = false;
    await mempool.sweep();
    t.is(await store.pendingCount(), 0);
  });

  test(`${engine}: rejected is final, also after a restart`, async (t) => {
    const database = await engines.open(t, engine);
    const bad = deletion(alice, 1);
    const first = await start(database);
    const hash = await first.chain.submit(bad);
    await first.chain.produceBlock(authority);
    for (const { chain, mempool } of [first, await start(database)]) {
      const error = await t.throwsAsync(chain.submit(bad), { instanceOf: RpcError });
      t.like(error, {
        reason: "INVALID_REQUEST",
        message: "The transaction was rejected: There is no storage program at this address.",
      });
      t.deepEqual(await mempool.transactionStatus(hash), {
        status: "rejected",
        reason: "There is no storage program at this address.",
      });
      t.is(mempool.stats().count, 0);
    }
  });

  test(`${engine}: what expires leaves the mempool for good, and is told of`, async (t) => {
    const database = await engines.open(t, engine);
    let nowMs = 1_800_000_000_000;
    const { chain, mempool, store } = await start(database, { nowMs: () => nowMs });
    const expiresMs = nowMs + 600_000;
    const transaction = signTransaction(alice, 1, createPublic("a", "{}"), { expiresMs });
    const hash = await chain.submit(transaction);
    nowMs += 599_000;
    await mempool.sweep();
    t.is(await store.pendingCount(), 1);
    nowMs += 2_000;
    await mempool.sweep();
    t.is(await store.pendingCount(), 0);
    const fate = await mempool.transactionStatus(hash);
    t.deepEqual(fate, await store.transactionStatus(hash));
    t.regex(
      fate?.status === "rejected" ? fate.reason : "",
      /^The transaction has expired: it was in no block by 2027-/,
    );
    t.is(await reasonOf(chain.submit(transaction)), "INVALID_REQUEST");
    t.is((await chain.produceBlock(authority)).block, undefined);
  });

  test(`${engine}: what is pending comes back after a restart, in its order, with whose it is`, async (t) => {
    const database = await engines.open(t, engine);
    const first = await start(database);
    const hashes: string[] = [];
    for (let nonce = 1; nonce <= 3; nonce++) {
      hashes.push(await first.chain.submit(program(alice, nonce), from("192.0.2.1")));
    }
    const { chain, mempool } = await start(database);
    t.deepEqual(
      (await mempool.oldestPending(10)).map(({ hash }) => hash),
      hashes,
    );
    t.deepEqual(mempool.stats(), first.mempool.stats());
    t.is((await chain.produceBlock(authority)).block!.transactions.length, 3);
  });

  test(`${engine}: bytes that somebody changed keep nobody waiting`, async (t) => {
    const database = await engines.open(t, engine);
    const { chain, mempool } = await start(database);
    const [torn, changed] = [await chain.submit(program(alice, 1)), await chain.submit(program(alice, 2))];
    const good = await chain.submit(program(bob, 1));
    for (const [hash, bytes] of [
      [torn, "ff"],
      [changed, "0a0101"],
    ] as const) {
      await database.mempool.write.run((sql) =>
        sql("pending_transactions")
          .where({ hash })
          .update({ bytes: Buffer.from(bytes, "hex") }),
      );
    }
    const { block } = await chain.produceBlock(authority);
    t.deepEqual(
      block!.transactions.map(({ hash }) => hash),
      [good],
    );
    t.is((await mempool.transactionStatus(torn))?.status, "rejected");
    t.is((await mempool.transactionStatus(changed))?.status, "rejected");
  });
}

test("a block that comes while its transaction is being taken leaves nothing pending", async (t) => {
  const database = await engines.open(t, "sqlite");
  const maker = await start(await engines.open(t, "sqlite"));
  const transaction = program(alice, 1);
  await maker.chain.submit(transaction);
  const { block } = await maker.chain.produceBlock(authority);

  let inserting = false;
  const { promise, open } = createGate();
  const { chain, mempool, store } = await start(database, {
    change: (whole) => ({
      ...whole,
      mempool: {
        ...whole.mempool,
        async insertPending(...given) {
          inserting = true;
          await promise;
          await whole.mempool.insertPending(...given);
        },
      },
    }),
  });
  const submitted = chain.submit(transaction);
  await until(() => inserting);
  const again = chain.submit(transaction);
  await chain.apply(block!.signed);
  open();
  const hash = await submitted;
  t.is(await again, hash);
  t.is((await mempool.transactionStatus(hash))?.status, "included");
  t.is(mempool.stats().count, 0);
  t.is(await store.pendingCount(), 0);
});

test("an origin has its share, a sender too, and there is room for somebody else", async (t) => {
  const { chain, mempool } = await start(await engines.open(t, "sqlite"));
  const flood = from("192.0.2.1");
  for (let i = 0; i < 500; i++) {
    await chain.submit(program(testKey(100 + (i % 50)), i), flood);
  }
  const error = await t.throwsAsync(chain.submit(program(bob, 1), flood), { instanceOf: RpcError });
  t.like(error, { reason: "OVERLOADED", retryAfterS: 1 });
  t.regex(error.message, /pending transactions for this address/);
  const honest = await chain.submit(program(bob, 1), from("192.0.2.2"));
  await chain.submit(program(bob, 2), from("192.0.2.1", true));
  t.is(mempool.stats().refused.share, 1);
  t.is(mempool.stats().largestSource, 501 / 10_000);
  const { block } = await chain.produceBlock(authority);
  // Of fifty senders at one origin and one at another, his is the second.
  t.is(
    block!.transactions.findIndex(({ hash }) => hash === honest),
    1,
  );
  // There is room again.
  await chain.submit(program(bob, 3), flood);
});

test("a sender has a tenth of the mempool at most, from wherever it comes", async (t) => {
  const { chain } = await start(await engines.open(t, "sqlite"));
  const document = JSON.stringify("x".repeat(1_000_000));
  const reasons = [];
  for (let nonce = 1; nonce <= 7; nonce++) {
    reasons.push(await reasonOf(chain.submit(program(alice, nonce, document), from(`192.0.2.${nonce}`))));
  }
  t.deepEqual(reasons, [...Array.from({ length: 6 }, () => undefined), "OVERLOADED"]);
});

test("as the mempool fills up shares shrink, so that a newcomer finds room", async (t) => {
  const { chain } = await start(await engines.open(t, "sqlite"));
  const document = JSON.stringify("x".repeat(1_000_000));
  let taken = 0;
  for (let origin = 1; origin <= 40; origin++) {
    for (let i = 0; i < 4; i++) {
      const transaction = program(testKey(100 + origin), i, document);
      taken += Number((await reasonOf(chain.submit(transaction, from(`192.0.2.${origin}`)))) === undefined);
    }
  }
  t.true(taken > 55 && taken <= 67, `${taken} of a megabyte each`);
  t.is(await reasonOf(chain.submit(program(bob, 1), from("203.0.113.1"))), undefined);
});

test("rates hold for strangers, rules for writers for everybody, and what is refused by a rule is counted", async (t) => {
  const rules = {
    rates: { bytes: 0, programs: 2, leaves: 1 },
    mayWrite: (sender: string) => sender !== bob.publicKey,
  };
  const { chain, mempool } = await start(await engines.open(t, "sqlite"), { rules });
  const stranger = from("192.0.2.1");
  t.is(await reasonOf(chain.submit(program(bob, 1))), "PERMISSION_DENIED");
  await chain.submit(program(alice, 1), stranger);
  await chain.submit(program(alice, 2), stranger);
  t.is(await reasonOf(chain.submit(program(alice, 3), stranger)), "RATE_LIMITED");
  t.is(await reasonOf(chain.submit(program(testKey(9), 1), stranger)), "RATE_LIMITED", "another key, the same address");
  await chain.submit(program(testKey(9), 1), from("192.0.2.2"));
  await chain.submit(program(alice, 3), from("192.0.2.1", true));
  await chain.submit(signZk(alice, 4, commit(`0x${"1".padStart(64, "0")}`)), stranger);
  t.is(await reasonOf(chain.submit(signZk(alice, 5, commit(`0x${"2".padStart(64, "0")}`)), stranger)), "RATE_LIMITED");
  t.deepEqual(mempool.stats().refused, { share: 0, rate: 3, writers: 1 });
});

test("a transaction that another address sends at the same time has its own chance", async (t) => {
  const { chain } = await start(await engines.open(t, "sqlite"), {
    rules: { rates: { bytes: 0, programs: 1, leaves: 0 } },
  });
  const spent = from("192.0.2.1");
  await chain.submit(program(alice, 1), spent);
  const transaction = program(bob, 1);
  const [refused, taken] = await Promise.allSettled([
    chain.submit(transaction, spent),
    chain.submit(transaction, from("192.0.2.2")),
  ]);
  t.is(refused.status, "rejected");
  t.is(taken.status, "fulfilled");
});

for (const engine of engines.names) {
  test(`${engine}: what comes before the one before it waits for that one, and so does what comes after it`, async (t) => {
    const database = await engines.open(t, engine);
    let nowMs = Date.now();
    let { chain } = await start(database, { nowMs: () => nowMs });
    const inBlock = async (): Promise<bigint[]> => {
      const { block } = await chain.produceBlock(authority);
      return (
        block?.transactions.filter(({ body }) => body.sender === alice.publicKey).map(({ body }) => body.nonce) ?? []
      );
    };
    await chain.submit(program(alice, 3), { afterNonce: 2n });
    await chain.submit(program(alice, 4));
    await chain.submit(program(bob, 1));
    t.deepEqual(await inBlock(), []);
    // The order is known after a restart as well.
    ({ chain } = await start(database, { nowMs: () => nowMs }));
    t.deepEqual(await inBlock(), []);
    await chain.submit(program(alice, 2), { afterNonce: 1n });
    t.deepEqual(await inBlock(), []);
    await chain.submit(program(alice, 1));
    t.deepEqual(await inBlock(), [1n, 2n, 3n, 4n]);
    // What is in a block is not waited for.
    await chain.submit(program(alice, 6), { afterNonce: 4n });
    t.deepEqual(await inBlock(), [6n]);
    // Nobody waits for ever.
    await chain.submit(program(alice, 9), { afterNonce: 8n });
    nowMs += maxPredecessorWaitMs - 1;
    t.deepEqual(await inBlock(), []);
    // No two transactions come in the same millisecond.
    nowMs += 100;
    t.deepEqual(await inBlock(), [9n]);
  });
}

test("who says that there is less to wait for is believed", async (t) => {
  const { chain, mempool } = await start(await engines.open(t, "sqlite"));
  const late = program(alice, 9);
  const hash = await chain.submit(late, { afterNonce: 8n });
  mempool.lowerAfterNonce(hash, 8n);
  t.is((await chain.produceBlock(authority)).block, undefined);
  await chain.submit(program(alice, 7));
  t.is((await chain.produceBlock(authority)).block?.transactions.length, 1);
  mempool.lowerAfterNonce(hash, 7n);
  t.is((await chain.produceBlock(authority)).block?.transactions.length, 1);
  const twice = program(alice, 20);
  await chain.submit(twice, { afterNonce: 15n });
  t.is((await chain.produceBlock(authority)).block, undefined);
  await chain.submit(twice);
  t.is((await chain.produceBlock(authority)).block?.transactions.length, 1, "its sender hands it in here");
});

test("what never gets into a block is waited for no more", async (t) => {
  const { chain } = await start(await engines.open(t, "sqlite"));
  await chain.submit(deletion(alice, 1));
  await chain.submit(program(alice, 2), { afterNonce: 1n });
  const { block, rejected } = await chain.produceBlock(authority);
  t.is(rejected.size, 1);
  t.is(block?.transactions.length, 1);
});

test("what is relayed tells what it comes after, as far as that waits here", async (t) => {
  const { chain, mempool } = await start(await engines.open(t, "sqlite"));
  const hashes = [
    await chain.submit(program(alice, 5), { afterNonce: 3n }),
    await chain.submit(program(alice, 7)),
    await chain.submit(program(alice, 6)),
    await chain.submit(program(bob, 1)),
  ];
  const relayed = await mempool.toRelay("authority", Date.now(), { count: 10, bytes: 1_000_000 });
  const told = new Map(relayed.map(({ hash, afterNonce }) => [hash, afterNonce]));
  t.deepEqual(
    hashes.map((hash) => told.get(hash)),
    [3n, 6n, 5n, undefined],
  );
});

test("what waits is relayed in its turn, and what was refused keeps its sender's later ones back, and nobody else's", async (t) => {
  let nowMs = Date.now();
  const { chain, mempool } = await start(await engines.open(t, "sqlite"), { nowMs: () => nowMs });
  const ofAlice = [];
  for (let nonce = 1; nonce <= 3; nonce++) {
    ofAlice.push(await chain.submit(program(alice, nonce), from("192.0.2.1")));
  }
  const ofBob = await chain.submit(program(bob, 1), from("192.0.2.2"));
  const waiting = async (to: "authority" | "peer" = "authority"): Promise<string[]> =>
    (await mempool.toRelay(to, nowMs - 5_000, { count: 10, bytes: 1_000_000 })).map(({ hash }) => hash);
  t.deepEqual(await waiting(), [ofAlice[0], ofBob, ofAlice[1], ofAlice[2]]);
  mempool.markRelayed("authority", [ofAlice[0]!], nowMs);
  mempool.defer("authority", [ofAlice[1]!]);
  t.deepEqual(await waiting(), [ofBob]);
  t.is((await waiting("peer")).length, 4);
  nowMs += 1_000;
  t.deepEqual(await waiting(), [ofAlice[1], ofBob, ofAlice[2]]);
  mempool.defer("authority", [ofAlice[1]!]);
  nowMs += 1_000;
  t.deepEqual(await waiting(), [ofBob], "longer the second time");
  nowMs += 5_000;
  t.is((await waiting()).length, 4);
});

test("a clock that jumps neither holds up what waits nor lets it go early, also after a restart", async (t) => {
  const minuteMs = 60_000;
  for (const jumpMs of [-5 * minuteMs, 5 * minuteMs]) {
    const database = await engines.open(t, "sqlite");
    let [wallMs, monotonicMs] = [Date.now(), 10];
    const settings = { nowMs: () => wallMs, rules: { monotonicMs: () => monotonicMs } };
    let { chain, mempool } = await start(database, settings);
    const sealed = async (): Promise<number> =>
      (await chain.produceBlock(authority, Date.now())).block?.transactions.length ?? 0;
    const toRelay = async (): Promise<number> =>
      (await mempool.toRelay("authority", monotonicMs - 5_000, { count: 10, bytes: 1_000_000 })).length;

    const lasting = (nonce: number) =>
      signTransaction(alice, nonce, createPublic(`p${nonce}`, "{}"), { expiresMs: Date.now() + 30 * minuteMs });
    const hash = await chain.submit(lasting(2), { afterNonce: 1n });
    t.is(await toRelay(), 1, "a process that has just begun relays at once");
    mempool.markRelayed("authority", [hash], monotonicMs);
    wallMs += jumpMs;
    t.is(await sealed(), 0, "it waits");
    t.is(await toRelay(), 0, "it was relayed a moment ago");
    monotonicMs += 5_001;
    t.is(await toRelay(), 1);
    mempool.defer("authority", [hash]);
    wallMs -= jumpMs;
    t.is(await toRelay(), 0);
    monotonicMs += 1_000;
    t.is(await toRelay(), 1);

    monotonicMs += maxPredecessorWaitMs;
    t.is(await sealed(), 1, "for its time, and no longer");

    await chain.submit(lasting(5), { afterNonce: 4n });
    wallMs -= 5 * minuteMs;
    ({ chain, mempool } = await start(database, settings));
    t.is(await sealed(), 0);
    monotonicMs += maxPredecessorWaitMs;
    t.is(await sealed(), 1, "and after a restart for no longer than that");
  }
});

/** A store whose look for the last nonce waits, each time, until it is let go. */
function slowChecks() {
  const waiting: (() => void)[] = [];
  let isSlow = true;
  const change = (store: ChainStore<State>): ChainStore<State> => ({
    ...store,
    async lastNonce(sender) {
      if (isSlow) {
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
      return await store.lastNonce(sender);
    },
  });
  return {
    change,
    waiting,
    letGo(): void {
      isSlow = false;
      waiting.splice(0).forEach((go) => go());
    },
  };
}

for (const engine of engines.names) {
  test(`${engine}: pending rows of a sender go into blocks in the order of their nonces, however they are stored`, async (t) => {
    const database = await engines.open(t, engine);
    const first = await start(database);
    for (const nonce of [9, 3, 7, 1, 5]) {
      await first.chain.submit(program(alice, nonce), from(`192.0.2.${nonce}`));
    }
    const hashes = (await first.mempool.oldestPending(10)).map(({ hash }) => hash);
    for (const [i, hash] of hashes.entries()) {
      // Two have the same time, and the last that came has the earliest.
      const receivedMs = Date.now() - Math.floor(i / 2) * 1_000;
      await database.mempool.write.run((sql) =>
        sql("pending_transactions").where({ hash }).update({ received_ms: receivedMs }),
      );
    }
    const { chain } = await start(database);
    const { block, rejected } = await chain.produceBlock(authority);
    t.deepEqual(
      block?.transactions.map(({ body }) => body.nonce),
      [1n, 3n, 5n, 7n, 9n],
    );
    t.is(rejected.size, 0);
  });

  test(`${engine}: a transaction that comes while a later one of its sender gets into a block is not acknowledged`, async (t) => {
    const database = await engines.open(t, engine);
    const { promise, open } = createGate();
    t.teardown(open);
    let isMaking = false;
    const { chain, mempool, store } = await start(database, {
      gate: promise,
      change: (whole) => ({
        ...whole,
        write(newest, work) {
          isMaking = true;
          return whole.write(newest, work);
        },
      }),
    });
    await chain.submit(program(alice, 5));
    const sealed = chain.produceBlock(authority);
    await until(() => isMaking);
    const early = program(alice, 1);
    const outcome = Promise.allSettled([chain.submit(early)]);
    // Others do not wait for the block.
    await chain.submit(program(bob, 1));
    const next = chain.submit(program(alice, 6));
    open();
    t.is((await sealed).block!.transactions.length, 1);
    const [{ status }] = await outcome;
    t.is(status, "rejected");
    await next;
    t.is((await chain.produceBlock(authority)).rejected.size, 0);
    t.is(await mempool.transactionStatus(sha256(early.body)), undefined);
    t.is(await store.pendingCount(), 0);
  });

  test(`${engine}: of what a sender hands in at once, a later one is neither stored nor taken before an earlier one`, async (t) => {
    const database = await engines.open(t, engine);
    const checks = slowChecks();
    const { chain, mempool, store } = await start(database, checks);
    const early = chain.submit(program(alice, 1));
    await until(() => checks.waiting.length === 1);
    const late = chain.submit(program(alice, 5));
    await until(() => checks.waiting.length === 2);
    checks.waiting[1]!();
    const others = chain.submit(program(bob, 1));
    await until(() => checks.waiting.length === 3);
    checks.waiting[2]!();
    await others;
    t.is(await store.pendingCount(), 1, "what is stored now is there after a kill, without the one before it");
    t.is((await chain.produceBlock(authority)).block?.transactions.length, 1);
    checks.letGo();
    await Promise.all([early, late]);
    const { block, rejected } = await chain.produceBlock(authority);
    t.deepEqual(
      block?.transactions.map(({ body }) => body.nonce),
      [1n, 5n],
    );
    t.is(rejected.size, 0);
    t.is(mempool.stats().count, 0);
  });

  test(`${engine}: what waits is neither taken nor relayed before an earlier one of its sender that is being stored`, async (t) => {
    const database = await engines.open(t, engine);
    const checks = slowChecks();
    const { chain, mempool } = await start(database, checks);
    const late = chain.submit(program(alice, 5));
    await until(() => checks.waiting.length === 1);
    checks.waiting[0]!();
    await late;
    const early = chain.submit(program(alice, 1));
    await until(() => checks.waiting.length === 2);
    const relayed = async (): Promise<number> =>
      (await mempool.toRelay("authority", Date.now(), { count: 10, bytes: 1_000_000 })).length;
    t.is(await relayed(), 0);
    t.is((await chain.produceBlock(authority)).block, undefined);
    checks.letGo();
    await early;
    t.is(await relayed(), 2);
    t.is((await chain.produceBlock(authority)).block?.transactions.length, 2);
  });

  test(`${engine}: after a restart nothing waits for what is in a block`, async (t) => {
    const database = await engines.open(t, engine);
    const first = await start(database);
    await first.chain.submit(program(alice, 1));
    await first.chain.submit(program(alice, 2), { afterNonce: 1n });
    t.is((await first.chain.produceBlock(authority)).block?.transactions.length, 2);
    await first.chain.submit(program(alice, 4), { afterNonce: 3n });
    await database.mempool.write.run((sql) => sql("pending_transactions").update({ after_nonce: 2 }));
    const { chain } = await start(database);
    t.is((await chain.produceBlock(authority)).block?.transactions.length, 1);
  });
}
