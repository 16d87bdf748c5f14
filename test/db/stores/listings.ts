import test from "ava";
import { AccessMode } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { programAddress } from "../../../src/base/program-address.js";
import { createChainStore } from "../../../src/chain/chain-store.js";
import { pruneBlocks } from "../../../src/chain/blocks/header-store.js";
import { latestPosition, readTransactionPage } from "../../../src/chain/blocks/lists.js";
import type { TransactionFilter } from "../../../src/chain/blocks/listing-store.js";
import { verifyBlock } from "../../../src/chain/transactions/transaction.js";
import { stateIn } from "../../../src/node/chain/transaction-executor.js";
import { createProgramHistory } from "../../../src/node/serving/data-services.js";
import type { Database } from "../../../src/db/queries/database.js";
import { openChain } from "../../helpers/chain/chain.js";
import { testKey } from "../../helpers/chain/keys.js";
import { commit, createPublic, rulesOf, signTransaction, signZk } from "../../helpers/chain/transactions.js";
import type { StoreSuite } from "./suite.js";

const [authority, alice, bob] = [testKey(1), testKey(2), testKey(3)];
const { signal } = new AbortController();
const small = programAddress(alice.publicKey, "small", 1n, "");

/** Produces four blocks. The first creates a program and the others change it; each has two other transactions. */
async function fill(database: Database) {
  const chain = await openChain(database, [authority]);
  for (let i = 1; i <= 4; i++) {
    await chain.submit(
      signTransaction(
        alice,
        i,
        i === 1
          ? createPublic("small", "{}")
          : { case: "setField", value: { storageAddress: small, field: `f${i}`, value: "1" } },
      ),
    );
    await chain.submit(
      signTransaction(bob, 2 * i - 1, {
        case: "createProgram",
        value: { programName: `p${i}`, access: { mode: AccessMode.OWNER } },
      }),
    );
    await chain.submit(signZk(bob, 2 * i, commit(`0x${String(i).padStart(64, "0")}`)));
    await chain.produceBlock(authority);
  }
  return createChainStore(database, stateIn);
}

export const testListings: StoreSuite = (engine, open) => {
  test.serial(`${engine}: listings: blocks are listed latest first, each once, in pages`, async (t) => {
    const store = await fill(await open(t));
    const numbers = async (below: bigint, limit: number) =>
      (await store.recentBlocks(below, limit)).map(({ header }) => header.number);
    t.deepEqual(await numbers(5n, 10), [4n, 3n, 2n, 1n]);
    t.deepEqual(await numbers(5n, 3), [4n, 3n, 2n]);
    t.deepEqual(await numbers(2n, 3), [1n]);
    t.deepEqual(await numbers(1n, 3), []);
    const [latest] = await store.recentBlocks(5n, 1);
    t.is(latest!.transactionCount, 3);
    t.is(latest!.hash, (await store.head())!.hash);
  });

  test.serial(
    `${engine}: listings: transactions are listed latest first, by block, sender and program, each once over all pages`,
    async (t) => {
      const store = await fill(await open(t));
      const readPages = async (filter: TransactionFilter, pageSize: number, maxBytes = 1e6): Promise<string[]> => {
        const listed: string[] = [];
        for (let before: typeof latestPosition | undefined = latestPosition; before !== undefined;) {
          const page = await readTransactionPage({ store, filter, before, pageSize, maxBytes, signal });
          t.true(page.transactions.length > 0 && page.transactions.length <= pageSize);
          listed.push(...page.transactions.map(({ blockNumber, position }) => `${blockNumber}.${position}`));
          before = page.next as typeof latestPosition | undefined;
        }
        return listed;
      };
      const all = await readPages({}, 100);
      const stored = await Promise.all([4n, 3n, 2n, 1n].map((number) => store.block(number)));
      t.deepEqual(
        all,
        stored.flatMap((block) => block!.transactionHashes.map((_, i) => `${block!.header.number}.${i}`).reverse()),
      );
      t.is(all.length, 12);
      for (const pageSize of [1, 2, 5, 12]) {
        t.deepEqual(await readPages({}, pageSize), all);
      }
      t.deepEqual(await readPages({}, 100, 1), all, "a page has at least one transaction, regardless of its size");
      t.deepEqual(
        await readPages({ block: 3n }, 2),
        all.filter((position) => position.startsWith("3.")),
      );
      t.is((await readPages({ sender: alice.publicKey }, 3)).length, 4);
      t.is((await readPages({ sender: bob.publicKey }, 3)).length, 8);
      t.is((await readPages({ sender: bob.publicKey, block: 2n }, 1)).length, 2);
      t.is((await readPages({ program: small }, 3)).length, 4);
      t.deepEqual(await store.transactionEntries({ sender: authority.publicKey }, latestPosition, 5), []);
    },
  );

  test.serial(`${engine}: listings: the history of a program covers the retained blocks`, async (t) => {
    const database = await open(t);
    const store = await fill(database);
    const history = createProgramHistory(store);
    const kinds = async () =>
      (await history(small, undefined, 10, signal)).changes.map((change) => change.operation.operation.case);
    t.deepEqual(await kinds(), ["setField", "setField", "setField", "createProgram"]);
    const page = await history(small, undefined, 3, signal);
    t.is(page.fromBlock, 1n);
    t.deepEqual(
      (await history(small, page.next, 3, signal)).changes.map(({ blockNumber, sender }) => [blockNumber, sender]),
      [[1n, alice.publicKey]],
    );
    await database.transaction((db) => pruneBlocks(db, 3n));
    t.deepEqual(await kinds(), ["setField", "setField"]);
    t.is((await history(small, undefined, 10, signal)).fromBlock, 3n);
    t.is((await store.recentBlocks(3n, 1))[0]!.transactionCount, undefined);
  });

  test.serial(`${engine}: listings: wrong index columns of a transaction are detected`, async (t) => {
    const database = await open(t);
    const store = await fill(database);
    const block = await verifyBlock((await store.block(2n))!.block, rulesOf());
    await t.notThrowsAsync(store.checkListed(2n, block.transactions));
    await database.write.run((sql) =>
      sql("transactions")
        .where("block_number", 2)
        .where("position", 0)
        .update({ program: Buffer.alloc(20), sender: Buffer.alloc(32) }),
    );
    await t.throwsAsync(store.checkListed(2n, block.transactions), { message: /not found by sender and by program/ });
    await t.throwsAsync(createProgramHistory(store)(`stor-${"0".repeat(40)}`, undefined, 10, signal), {
      message: /does not match the transaction/,
    });
    await database.write.run((sql) => sql("block_bounds").update({ indexed_from: 3 }));
    await t.notThrowsAsync(store.checkListed(2n, block.transactions), "blocks that are not indexed are not checked");
    t.is((await createProgramHistory(store)(small, undefined, 10, signal)).fromBlock, 3n);
  });
};
