/** Write fence with two nodes at one database, and a commit whose outcome is lost. */
import test from "ava";
import { setImmediate } from "node:timers/promises";
import { markDatabaseError } from "../../src/base/errors/database-error-kind.js";
import { createChainStore } from "../../src/chain/chain-store.js";
import { createFence, noFence } from "../../src/chain/writer/fence-store.js";
import { FencedError } from "../../src/chain/blocks/store-types.js";
import { createWriterLeaseStore } from "../../src/chain/writer/writer-lease-store.js";
import type { Database } from "../../src/db/queries/database.js";
import { migrate } from "../../src/node/migrations/migrate.js";
import { openDatabase } from "../../src/db/open.js";
import { stateIn } from "../../src/node/chain/transaction-executor.js";
import { openParts } from "../helpers/chain/chain.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import { genesisOf, testKey } from "../helpers/chain/keys.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { createPublic, signTransaction, testNetwork } from "../helpers/chain/transactions.js";

const [authority, alice] = [testKey(1), testKey(2)];

const engines = await prepareEngines();

const genesis = {
  ...{ text: genesisOf(authority), hash: testNetwork, authorities: [authority.publicKey] },
  ...{ followers: [], writers: [], timestampMs: 0 },
};
const holderProcess = { host: "a host", machine: "a machine", pid: 7, identity: authority.publicKey };

/** Opens one database twice, as two nodes do. */
async function openTwice(t: Teardown, engine: (typeof engines.names)[number]): Promise<[Database, Database]> {
  const url = await engines.createUrl(t, engine);
  const open = async (): Promise<Database> => {
    const database = await openDatabase(url);
    t.teardown(() => database.close());
    return database;
  };
  const databases: [Database, Database] = [await open(), await open()];
  await migrate(databases[0]);
  return databases;
}

for (const engine of engines.names) {
  test(`${engine}: the next block follows a stored block whose commit outcome was lost`, async (t) => {
    let isLost = false;
    const applied: bigint[] = [];
    const { chain, mempool } = await openParts(await engines.open(t, engine), [authority], {
      wrapStore: (store) => ({
        ...store,
        async write(latest, work) {
          const result = await store.write(latest, work);
          if (isLost) {
            isLost = false;
            const error = new Error("Connection terminated");
            markDatabaseError(error);
            throw error;
          }
          return result;
        },
      }),
      onApplied: ({ header }) => applied.push(header.number),
    });
    await chain.submit(signTransaction(alice, 1, createPublic("a", "{}")));
    isLost = true;
    await t.throwsAsync(chain.produceBlock(authority), { message: "Connection terminated" });
    await chain.submit(signTransaction(alice, 2, createPublic("b", "{}")));
    const { block } = await chain.produceBlock(authority);
    t.is(block?.header.number, 2n);
    t.deepEqual(applied, [1n, 2n]);
    t.is(block?.transactions.length, 1, "the second block does not repeat the first transaction");
    t.is(mempool.stats().count, 0);
    await chain.confirm();
  });

  test(`${engine}: stores nothing if the latest block in the database differs from the node's`, async (t) => {
    const database = await engines.open(t, engine);
    const store = createChainStore(database, stateIn);
    await store.insertGenesis(genesis);
    const head = (await store.head())!;
    for (const [known, message] of [
      [
        { ...head, number: 3n, hash: "0x3" },
        /^The latest block in the database is 0, but this node has created or applied 3 /,
      ],
      [{ ...head, hash: "0x0" }, /^The latest block in the database is 0, but this node has created or applied 0 /],
    ] as const) {
      let hasRun = false;
      const work = (): Promise<void> => {
        hasRun = true;
        return Promise.resolve();
      };
      const error = await t.throwsAsync(store.write(known, work), { instanceOf: FencedError, message });
      t.is(error.reason, "latest");
      t.false(hasRun);
      const { chain } = await openParts(database, [authority], { head: known });
      await t.throwsAsync(chain.signHead(authority, 0), { instanceOf: FencedError, message });
    }
    await database.write.run((sql) => sql("blocks").delete());
    await t.throwsAsync(
      store.write(head, () => Promise.resolve()),
      { message: /^The database has no block, but/ },
    );
  });

  test(`${engine}: the lease cannot be acquired during a write, and a node that lost it writes nothing`, async (t) => {
    const [own, other] = await openTwice(t, engine);
    const lease = createWriterLeaseStore(other);
    const acquire = async (holder: string): Promise<number | undefined> =>
      await lease.acquire(await lease.read(), { ...holderProcess, holder });
    const held = { holder: "one", epoch: (await acquire("one"))! };
    const outcomes: (string | undefined)[] = [];
    const files =
      engine === "sqlite"
        ? { lock: () => Promise.resolve(true), findLostFile: () => Promise.resolve(undefined) }
        : undefined;
    const fence = createFence({ held, files, onOutcome: (error) => outcomes.push(error?.reason) });
    await lease.release(held);

    const tryToAcquire = (): Promise<number | undefined> => acquire("two").catch(() => undefined);
    await own.transaction((db) =>
      fence.blocks(db, async () => {
        t.is(await tryToAcquire(), undefined);
      }),
    );
    t.deepEqual(outcomes, [undefined]);
    await lease.release(held);
    if (engine === "postgresql") {
      await own.mempool.transaction((db) =>
        fence.mempool(db, async () => {
          t.is(await tryToAcquire(), undefined);
          // A block is stored during the transaction of the mempool.
          await own.transaction((blockDb) => fence.blocks(blockDb, () => setImmediate(undefined)));
        }),
      );
      await lease.release(held);
    }
    t.is(await tryToAcquire(), held.epoch + 1);
    outcomes.length = 0;
    const work = (): Promise<void> => Promise.reject(new Error("it ran"));
    await t.throwsAsync(
      own.transaction((db) => fence.blocks(db, work)),
      { instanceOf: FencedError, message: /^Another node writes to the database now/ },
    );
    if (engine === "postgresql") {
      await t.throwsAsync(
        own.mempool.transaction((db) => fence.mempool(db, work)),
        { instanceOf: FencedError },
      );
    }
    t.deepEqual(new Set(outcomes), new Set(["lease"]));
    await other.write.run((sql) => sql("writer_lease").update({ holder: "nobody", epoch: 0 }));
    await t.throwsAsync(
      own.transaction((db) => fence.blocks(db, work)),
      { message: /^The database was reset to an earlier state: its writer lease has epoch 0, and this node's has 1\./ },
    );
  });
}

test("a write is rolled back if a database file is moved during it", async (t) => {
  const database = await engines.open(t, "sqlite");
  const lease = createWriterLeaseStore(database);
  const held = {
    holder: "one",
    epoch: (await lease.acquire(await lease.read(), { ...holderProcess, holder: "one" }))!,
  };
  let lost: string | undefined;
  const files = { lock: () => Promise.resolve(true), findLostFile: () => Promise.resolve(lost) };
  const store = createChainStore(database, stateIn, createFence({ held, files, onOutcome: () => undefined }));
  lost = "/somewhere/gatehouse.sqlite";
  const error = await t.throwsAsync(store.insertGenesis(genesis), { instanceOf: FencedError });
  t.is(error.reason, "files");
  t.false(error.message.includes("/somewhere"), "the message does not contain the path");
  lost = undefined;
  t.is(await createChainStore(database, stateIn, noFence).head(), undefined);
  await store.insertGenesis(genesis);
});
