/** Mempool on both engines: admission while a block is built, restarts, quotas, order of each sender, and relay. */
import test from "ava";
import type { Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { sha256 } from "../../../src/base/crypto/hash.js";
import type { SubmissionSource } from "../../../src/chain/mempool/mempool-intake.js";
import { maxPredecessorWaitMs } from "../../../src/chain/mempool/mempool-index.js";
import type { MempoolStore } from "../../../src/chain/blocks/mempool-store.js";
import type { Database } from "../../../src/db/queries/database.js";
import { RpcError } from "../../../src/rpc/errors.js";
import { type ChainSettings, openParts } from "../../helpers/chain/chain.js";
import { prepareEngines } from "../../helpers/databases/databases.js";
import { testKey } from "../../helpers/chain/keys.js";
import { commit, createPublic, signTransaction, signZk } from "../../helpers/chain/transactions.js";
import { until } from "../../helpers/nodes/until.js";

const [authority, alice, bob] = [testKey(1), testKey(2), testKey(3)];
const engines = await prepareEngines();

interface Settings extends ChainSettings {
  /** Delays the execution of every transaction until it resolves. */
  readonly gate?: Promise<void>;
  /** Replaces functions of the mempool's store. */
  readonly wrapMempool?: (mempool: MempoolStore) => Partial<MempoolStore>;
}

/** Opens store, mempool and chain over a database, as a node does at each start. */
async function start(database: Database, { gate, wrapMempool = () => ({}), ...settings }: Settings = {}) {
  return await openParts(database, [authority], {
    wrapStore: (store) => ({ ...store, mempool: { ...store.mempool, ...wrapMempool(store.mempool) } }),
    wrapExecutor: (executor) => ({
      ...executor,
      start(block, state) {
        const execution = executor.start(block, state);
        return { ...execution, apply: (transaction) => Promise.resolve(gate).then(() => execution.apply(transaction)) };
      },
    }),
    ...settings,
  });
}

/** Creates a promise, and the function that resolves it. */
function createGate() {
  let open = (): void => undefined;
  const promise = new Promise<void>((resolve) => (open = resolve));
  return { promise, open: () => open() };
}

const from = (address: string, isExempt = false): SubmissionSource => ({ source: { address, isExempt } });
const program = (key: typeof alice, nonce: number, json = "{}"): Transaction =>
  signTransaction(key, nonce, createPublic(`p${nonce}`, json));

/** Deletes a program that does not exist, so block production rejects the transaction. */
const invalidDeletion = (key: typeof alice, nonce: number): Transaction =>
  signTransaction(key, nonce, { case: "deleteProgram", value: { storageAddress: `stor-${"0".repeat(40)}` } });

/** Returns the reason of the RpcError with which a promise rejects; undefined if it resolves. */
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
  test(`${engine}: accepts transactions and reports them as pending while a block is being built`, async (t) => {
    const database = await engines.open(t, engine);
    const { promise, open } = createGate();
    t.teardown(open);
    const { chain, mempool, store } = await start(database, { gate: promise });
    const first = await chain.submit(program(alice, 1));
    const production = chain.produceBlock(authority);
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
    t.is((await production).block!.transactions.length, 1);
    t.is((await chain.produceBlock(authority)).block!.transactions.length, 20);
    t.is(await store.pendingCount(), 0);
  });

  test(`${engine}: removes included transactions at start that a killed process left in the mempool`, async (t) => {
    const database = await engines.open(t, engine);
    const killed = await start(database, {
      wrapMempool: () => ({ remove: () => Promise.reject(new Error("the process ends here")) }),
    });
    const transaction = program(alice, 1);
    const valid = await killed.chain.submit(transaction);
    const invalid = await killed.chain.submit(invalidDeletion(alice, 2));
    await killed.chain.produceBlock(authority);
    t.is((await killed.mempool.transactionStatus(valid))?.status, "included");
    t.like(await killed.mempool.transactionStatus(invalid), {
      status: "rejected",
      reason: "There is no storage program at this address.",
    });
    t.is(
      (await killed.store.transactionStatus(valid))?.status,
      "included",
      "the block takes precedence over the mempool",
    );
    t.is(await killed.store.pendingCount(), 2);

    const { chain, mempool, store } = await start(database);
    t.is((await mempool.transactionStatus(valid))?.status, "included");
    t.is(mempool.stats().count, 1);
    t.is((await chain.produceBlock(authority)).block, undefined);
    t.is((await mempool.transactionStatus(invalid))?.status, "rejected");
    t.is(await store.pendingCount(), 0);
    t.is(await chain.submit(transaction), valid);
    t.is((await database.read.rows((sql) => sql("transactions"))).length, 1);
  });

  test(`${engine}: retries the removal of included transactions after a database error`, async (t) => {
    const database = await engines.open(t, engine);
    let isBroken = true;
    const { chain, mempool, store } = await start(database, {
      wrapMempool: (inner) => ({
        remove: (removals) => (isBroken ? Promise.reject(new Error("the disk is full")) : inner.remove(removals)),
      }),
    });
    await chain.submit(program(alice, 1));
    await chain.produceBlock(authority);
    t.is(await store.pendingCount(), 1);
    isBroken = false;
    await mempool.sweep();
    t.is(await store.pendingCount(), 0);
  });

  test(`${engine}: does not accept a rejected transaction again, also after a restart`, async (t) => {
    const database = await engines.open(t, engine);
    const invalid = invalidDeletion(alice, 1);
    const first = await start(database);
    const hash = await first.chain.submit(invalid);
    await first.chain.produceBlock(authority);
    for (const { chain, mempool } of [first, await start(database)]) {
      const error = await t.throwsAsync(chain.submit(invalid), { instanceOf: RpcError });
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

  test(`${engine}: rejects an expired transaction, and stores its rejection`, async (t) => {
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
    const info = await mempool.transactionStatus(hash);
    t.deepEqual(info, await store.transactionStatus(hash));
    t.regex(
      info?.status === "rejected" ? info.reason : "",
      /^The transaction has expired: it was in no block by 2027-/,
    );
    t.is(await reasonOf(chain.submit(transaction)), "INVALID_REQUEST");
    t.is((await chain.produceBlock(authority)).block, undefined);
  });

  test(`${engine}: restores pending transactions after a restart, with their order and sources`, async (t) => {
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

  test(`${engine}: rejects pending transactions with changed bytes, and includes the others`, async (t) => {
    const database = await engines.open(t, engine);
    const { chain, mempool } = await start(database);
    const [undecodable, changed] = [await chain.submit(program(alice, 1)), await chain.submit(program(alice, 2))];
    const unchanged = await chain.submit(program(bob, 1));
    for (const [hash, bytes] of [
      [undecodable, "ff"],
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
      [unchanged],
    );
    t.is((await mempool.transactionStatus(undecodable))?.status, "rejected");
    t.is((await mempool.transactionStatus(changed))?.status, "rejected");
  });
}

test("a transaction is not pending if a block includes it while it is being stored", async (t) => {
  const database = await engines.open(t, "sqlite");
  const producer = await start(await engines.open(t, "sqlite"));
  const transaction = program(alice, 1);
  await producer.chain.submit(transaction);
  const { block } = await producer.chain.produceBlock(authority);

  let isInserting = false;
  const { promise, open } = createGate();
  const { chain, mempool, store } = await start(database, {
    wrapMempool: (inner) => ({
      async insertPending(entry, bytes) {
        isInserting = true;
        await promise;
        await inner.insertPending(entry, bytes);
      },
    }),
  });
  const submitted = chain.submit(transaction);
  await until(() => isInserting);
  const concurrent = chain.submit(transaction);
  await chain.apply(block!.signed);
  open();
  const hash = await submitted;
  t.is(await concurrent, hash);
  t.is((await mempool.transactionStatus(hash))?.status, "included");
  t.is(mempool.stats().count, 0);
  t.is(await store.pendingCount(), 0);
});

test("a source above its quota gets OVERLOADED, and other sources are admitted", async (t) => {
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
  // The two sources alternate, although the first one has fifty senders.
  t.is(
    block!.transactions.findIndex(({ hash }) => hash === honest),
    1,
  );
  // The block has freed capacity.
  await chain.submit(program(bob, 3), flood);
});

test("a sender takes at most a tenth of the mempool, over all sources together", async (t) => {
  const { chain } = await start(await engines.open(t, "sqlite"));
  const document = JSON.stringify("x".repeat(1_000_000));
  const reasons = [];
  for (let nonce = 1; nonce <= 7; nonce++) {
    reasons.push(await reasonOf(chain.submit(program(alice, nonce, document), from(`192.0.2.${nonce}`))));
  }
  t.deepEqual(reasons, [...Array.from({ length: 6 }, () => undefined), "OVERLOADED"]);
});

test("quotas shrink as the mempool fills up, so a new source is still admitted", async (t) => {
  const { chain } = await start(await engines.open(t, "sqlite"));
  const document = JSON.stringify("x".repeat(1_000_000));
  let admitted = 0;
  for (let source = 1; source <= 40; source++) {
    for (let i = 0; i < 4; i++) {
      const transaction = program(testKey(100 + source), i, document);
      admitted += Number((await reasonOf(chain.submit(transaction, from(`192.0.2.${source}`)))) === undefined);
    }
  }
  t.true(admitted > 55 && admitted <= 67, `${admitted} of a megabyte each`);
  t.is(await reasonOf(chain.submit(program(bob, 1), from("203.0.113.1"))), undefined);
});

test("exempt sources have no rates, but need a listed sender; refusals are counted by reason", async (t) => {
  const rules = {
    rates: { bytes: 0, programs: 2, leaves: 1 },
    mayWrite: (sender: string) => sender !== bob.publicKey,
  };
  const { chain, mempool } = await start(await engines.open(t, "sqlite"), { rules });
  const limited = from("192.0.2.1");
  t.is(await reasonOf(chain.submit(program(bob, 1))), "PERMISSION_DENIED");
  await chain.submit(program(alice, 1), limited);
  await chain.submit(program(alice, 2), limited);
  t.is(await reasonOf(chain.submit(program(alice, 3), limited)), "RATE_LIMITED");
  t.is(await reasonOf(chain.submit(program(testKey(9), 1), limited)), "RATE_LIMITED", "another key, the same address");
  await chain.submit(program(testKey(9), 1), from("192.0.2.2"));
  await chain.submit(program(alice, 3), from("192.0.2.1", true));
  await chain.submit(signZk(alice, 4, commit(`0x${"1".padStart(64, "0")}`)), limited);
  t.is(await reasonOf(chain.submit(signZk(alice, 5, commit(`0x${"2".padStart(64, "0")}`)), limited)), "RATE_LIMITED");
  t.deepEqual(mempool.stats().refused, { share: 0, rate: 3, writers: 1 });
});

test("a rejected submission does not affect a concurrent one of the same transaction", async (t) => {
  const { chain } = await start(await engines.open(t, "sqlite"), {
    rules: { rates: { bytes: 0, programs: 1, leaves: 0 } },
  });
  const atLimit = from("192.0.2.1");
  await chain.submit(program(alice, 1), atLimit);
  const transaction = program(bob, 1);
  const [first, second] = await Promise.allSettled([
    chain.submit(transaction, atLimit),
    chain.submit(transaction, from("192.0.2.2")),
  ]);
  t.is(first.status, "rejected");
  t.is(second.status, "fulfilled");
});

for (const engine of engines.names) {
  test(`${engine}: waits up to 30 s for the predecessor of a transaction, and delays later ones`, async (t) => {
    const database = await engines.open(t, engine);
    let nowMs = Date.now();
    let { chain } = await start(database, { nowMs: () => nowMs });
    const produce = async (): Promise<bigint[]> => {
      const { block } = await chain.produceBlock(authority);
      return (
        block?.transactions.filter(({ body }) => body.sender === alice.publicKey).map(({ body }) => body.nonce) ?? []
      );
    };
    await chain.submit(program(alice, 3), { afterNonce: 2n });
    await chain.submit(program(alice, 4));
    await chain.submit(program(bob, 1));
    t.deepEqual(await produce(), []);
    // The order is restored after a restart.
    ({ chain } = await start(database, { nowMs: () => nowMs }));
    t.deepEqual(await produce(), []);
    await chain.submit(program(alice, 2), { afterNonce: 1n });
    t.deepEqual(await produce(), []);
    await chain.submit(program(alice, 1));
    t.deepEqual(await produce(), [1n, 2n, 3n, 4n]);
    // A predecessor that is in a block needs no wait.
    await chain.submit(program(alice, 6), { afterNonce: 4n });
    t.deepEqual(await produce(), [6n]);
    // The wait is limited.
    await chain.submit(program(alice, 9), { afterNonce: 8n });
    nowMs += maxPredecessorWaitMs - 1;
    t.deepEqual(await produce(), []);
    // Arrival times are unique, so the recorded one may be some milliseconds later.
    nowMs += 100;
    t.deepEqual(await produce(), [9n]);
  });
}

test("a lower predecessor nonce, or none, shortens the wait of a pending transaction", async (t) => {
  const { chain, mempool } = await start(await engines.open(t, "sqlite"));
  const hash = await chain.submit(program(alice, 9), { afterNonce: 8n });
  mempool.lowerAfterNonce(hash, 8n);
  t.is((await chain.produceBlock(authority)).block, undefined);
  await chain.submit(program(alice, 7));
  t.is((await chain.produceBlock(authority)).block?.transactions.length, 1);
  mempool.lowerAfterNonce(hash, 7n);
  t.is((await chain.produceBlock(authority)).block?.transactions.length, 1);
  const relayed = program(alice, 20);
  await chain.submit(relayed, { afterNonce: 15n });
  t.is((await chain.produceBlock(authority)).block, undefined);
  await chain.submit(relayed);
  t.is((await chain.produceBlock(authority)).block?.transactions.length, 1, "the sender submits it here, too");
});

test("a transaction stops waiting for a predecessor that is rejected", async (t) => {
  const { chain } = await start(await engines.open(t, "sqlite"));
  await chain.submit(invalidDeletion(alice, 1));
  await chain.submit(program(alice, 2), { afterNonce: 1n });
  const { block, rejected } = await chain.produceBlock(authority);
  t.is(rejected.size, 1);
  t.is(block?.transactions.length, 1);
});

test("a relayed transaction states the nonce of its predecessor", async (t) => {
  const { chain, mempool } = await start(await engines.open(t, "sqlite"));
  const hashes = [
    await chain.submit(program(alice, 5), { afterNonce: 3n }),
    await chain.submit(program(alice, 7)),
    await chain.submit(program(alice, 6)),
    await chain.submit(program(bob, 1)),
  ];
  const relayed = await mempool.toRelay("authority", Date.now(), { count: 10, bytes: 1_000_000 });
  const predecessors = new Map(relayed.map(({ hash, afterNonce }) => [hash, afterNonce]));
  t.deepEqual(
    hashes.map((hash) => predecessors.get(hash)),
    [3n, 6n, 5n, undefined],
  );
});

test("transactions are relayed in fair order; a deferred one delays the later ones of its sender only", async (t) => {
  let nowMs = Date.now();
  const { chain, mempool } = await start(await engines.open(t, "sqlite"), { nowMs: () => nowMs });
  const ofAlice = [];
  for (let nonce = 1; nonce <= 3; nonce++) {
    ofAlice.push(await chain.submit(program(alice, nonce), from("192.0.2.1")));
  }
  const ofBob = await chain.submit(program(bob, 1), from("192.0.2.2"));
  const toRelay = async (to: "authority" | "peer" = "authority"): Promise<string[]> =>
    (await mempool.toRelay(to, nowMs - 5_000, { count: 10, bytes: 1_000_000 })).map(({ hash }) => hash);
  t.deepEqual(await toRelay(), [ofAlice[0], ofBob, ofAlice[1], ofAlice[2]]);
  mempool.markRelayed("authority", [ofAlice[0]!], nowMs);
  mempool.defer("authority", [ofAlice[1]!]);
  t.deepEqual(await toRelay(), [ofBob]);
  t.is((await toRelay("peer")).length, 4);
  nowMs += 1_000;
  t.deepEqual(await toRelay(), [ofAlice[1], ofBob, ofAlice[2]]);
  mempool.defer("authority", [ofAlice[1]!]);
  nowMs += 1_000;
  t.deepEqual(await toRelay(), [ofBob], "the second delay is longer");
  nowMs += 5_000;
  t.is((await toRelay()).length, 4);
});

test("waits and relays depend on the monotonic clock: a change of the wall clock affects neither", async (t) => {
  const minuteMs = 60_000;
  for (const jumpMs of [-5 * minuteMs, 5 * minuteMs]) {
    const database = await engines.open(t, "sqlite");
    let [wallMs, monotonicMs] = [Date.now(), 10];
    const settings = { nowMs: () => wallMs, rules: { monotonicMs: () => monotonicMs } };
    let { chain, mempool } = await start(database, settings);
    const produce = async (): Promise<number> =>
      (await chain.produceBlock(authority, Date.now())).block?.transactions.length ?? 0;
    const toRelay = async (): Promise<number> =>
      (await mempool.toRelay("authority", monotonicMs - 5_000, { count: 10, bytes: 1_000_000 })).length;

    const longLived = (nonce: number) =>
      signTransaction(alice, nonce, createPublic(`p${nonce}`, "{}"), { expiresMs: Date.now() + 30 * minuteMs });
    const hash = await chain.submit(longLived(2), { afterNonce: 1n });
    t.is(await toRelay(), 1, "relayed immediately after the start");
    mempool.markRelayed("authority", [hash], monotonicMs);
    wallMs += jumpMs;
    t.is(await produce(), 0, "it waits");
    t.is(await toRelay(), 0, "relayed less than 5 s ago");
    monotonicMs += 5_001;
    t.is(await toRelay(), 1);
    mempool.defer("authority", [hash]);
    wallMs -= jumpMs;
    t.is(await toRelay(), 0);
    monotonicMs += 1_000;
    t.is(await toRelay(), 1);

    monotonicMs += maxPredecessorWaitMs;
    t.is(await produce(), 1, "the wait has ended");

    await chain.submit(longLived(5), { afterNonce: 4n });
    wallMs -= 5 * minuteMs;
    ({ chain, mempool } = await start(database, settings));
    t.is(await produce(), 0);
    monotonicMs += maxPredecessorWaitMs;
    t.is(await produce(), 1, "a restart does not extend the wait beyond the limit");
  }
});

/** Creates a wrapper of the store that blocks each read of a last nonce until the test releases it. */
function blockChecks() {
  const blocked: (() => void)[] = [];
  let isBlocking = true;
  const wrapStore: ChainSettings["wrapStore"] = (store) => ({
    ...store,
    async lastNonce(sender) {
      if (isBlocking) {
        await new Promise<void>((resolve) => blocked.push(resolve));
      }
      return await store.lastNonce(sender);
    },
  });
  return {
    wrapStore,
    /** Functions that release the blocked reads. */
    blocked,
    releaseAll(): void {
      isBlocking = false;
      blocked.splice(0).forEach((release) => release());
    },
  };
}

for (const engine of engines.names) {
  test(`${engine}: includes stored transactions of a sender in nonce order, whatever their times`, async (t) => {
    const database = await engines.open(t, engine);
    const first = await start(database);
    for (const nonce of [9, 3, 7, 1, 5]) {
      await first.chain.submit(program(alice, nonce), from(`192.0.2.${nonce}`));
    }
    const hashes = (await first.mempool.oldestPending(10)).map(({ hash }) => hash);
    for (const [i, hash] of hashes.entries()) {
      // Pairs of rows have equal times, and the times are in reverse order.
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

  test(`${engine}: rejects a transaction if a later one of its sender enters a block meanwhile`, async (t) => {
    const database = await engines.open(t, engine);
    const { promise, open } = createGate();
    t.teardown(open);
    let isProducing = false;
    const { chain, mempool, store } = await start(database, {
      gate: promise,
      wrapStore: (inner) => ({
        ...inner,
        write(latest, work) {
          isProducing = true;
          return inner.write(latest, work);
        },
      }),
    });
    await chain.submit(program(alice, 5));
    const production = chain.produceBlock(authority);
    await until(() => isProducing);
    const earlier = program(alice, 1);
    const outcome = Promise.allSettled([chain.submit(earlier)]);
    // Transactions of other senders do not wait for the block.
    await chain.submit(program(bob, 1));
    const next = chain.submit(program(alice, 6));
    open();
    t.is((await production).block!.transactions.length, 1);
    const [{ status }] = await outcome;
    t.is(status, "rejected");
    await next;
    t.is((await chain.produceBlock(authority)).rejected.size, 0);
    t.is(await mempool.transactionStatus(sha256(earlier.body)), undefined);
    t.is(await store.pendingCount(), 0);
  });

  test(`${engine}: stores concurrently submitted transactions of a sender in nonce order`, async (t) => {
    const database = await engines.open(t, engine);
    const checks = blockChecks();
    const { chain, mempool, store } = await start(database, checks);
    const earlier = chain.submit(program(alice, 1));
    await until(() => checks.blocked.length === 1);
    const later = chain.submit(program(alice, 5));
    await until(() => checks.blocked.length === 2);
    checks.blocked[1]!();
    const ofBob = chain.submit(program(bob, 1));
    await until(() => checks.blocked.length === 3);
    checks.blocked[2]!();
    await ofBob;
    t.is(await store.pendingCount(), 1, "a later transaction that is stored first would leave a gap after a kill");
    t.is((await chain.produceBlock(authority)).block?.transactions.length, 1);
    checks.releaseAll();
    await Promise.all([earlier, later]);
    const { block, rejected } = await chain.produceBlock(authority);
    t.deepEqual(
      block?.transactions.map(({ body }) => body.nonce),
      [1n, 5n],
    );
    t.is(rejected.size, 0);
    t.is(mempool.stats().count, 0);
  });

  test(`${engine}: holds back a transaction while an earlier one of its sender is being stored`, async (t) => {
    const database = await engines.open(t, engine);
    const checks = blockChecks();
    const { chain, mempool } = await start(database, checks);
    const later = chain.submit(program(alice, 5));
    await until(() => checks.blocked.length === 1);
    checks.blocked[0]!();
    await later;
    const earlier = chain.submit(program(alice, 1));
    await until(() => checks.blocked.length === 2);
    const countToRelay = async (): Promise<number> =>
      (await mempool.toRelay("authority", Date.now(), { count: 10, bytes: 1_000_000 })).length;
    t.is(await countToRelay(), 0);
    t.is((await chain.produceBlock(authority)).block, undefined);
    checks.releaseAll();
    await earlier;
    t.is(await countToRelay(), 2);
    t.is((await chain.produceBlock(authority)).block?.transactions.length, 2);
  });

  test(`${engine}: does not wait after a restart for a predecessor that is in a block`, async (t) => {
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
