import test from "ava";
import { toBinary } from "@bufbuild/protobuf";
import { TransactionSchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { createMempoolChanges, createMempoolStore, tryWrite } from "../../../src/chain/mempool-store.js";
import { encodeTransaction, readTransaction, type ReadTransaction } from "../../../src/chain/transaction.js";
import type { Database } from "../../../src/db/database.js";
import { createPublic, signTransaction, rulesOf } from "../../helpers/transactions.js";
import { testKey } from "../../helpers/keys.js";
import type { StoreSuite } from "./suite.js";

const transactions = Array.from({ length: 5 }, (_, i) =>
  readTransaction(signTransaction(testKey(2), i + 1, createPublic(`p${i}`, "{}")), rulesOf()),
);
const hashes = transactions.map(({ hash }) => hash);
const sizeBytes = ({ signed }: ReadTransaction): number => encodeTransaction(signed).length;

/** A pool with those transactions, which came at 5,000, 5,001 and so on. */
async function fill(database: Database) {
  const mempool = createMempoolStore(database);
  for (const [i, transaction] of transactions.entries()) {
    await mempool.insertPending(transaction, encodeTransaction(transaction.signed), 5_000 + i);
  }
  return mempool;
}

export const testMempool: StoreSuite = (engine, open) => {
  test(`${engine}: mempool: transactions come back in the order in which they came`, async (t) => {
    const mempool = await fill(await open(t));
    const [first] = transactions;
    await mempool.insertPending(first!, encodeTransaction(first!.signed), 9_000);
    t.deepEqual(
      (await mempool.pending(10)).map((transaction) => Buffer.from(toBinary(TransactionSchema, transaction))),
      transactions.map(({ signed }) => Buffer.from(encodeTransaction(signed))),
    );
    t.is((await mempool.pending(2)).length, 2);
    const portions = async (limit: number, portionBytes: number): Promise<number[][]> => {
      const read: number[][] = [];
      for await (const portion of mempool.pendingPortions(limit, portionBytes)) {
        read.push(
          portion.map(({ body }) => transactions.findIndex(({ signed }) => Buffer.from(signed.body).equals(body))),
        );
      }
      return read;
    };
    const two = sizeBytes(transactions[0]!) + sizeBytes(transactions[1]!);
    t.deepEqual(await portions(10, two), [[0, 1], [2, 3], [4]]);
    t.deepEqual(await portions(3, two), [[0, 1], [2]]);
    t.deepEqual(await portions(3, 1), [[0], [1], [2]], "each by itself is larger");
    t.is(await mempool.pendingCount(), 5);
    t.deepEqual(await mempool.mempoolSize(), {
      count: 5,
      bytes: transactions.reduce((sum, transaction) => sum + sizeBytes(transaction), 0),
    });
    t.deepEqual(await mempool.pendingSince(5_002, 10), hashes.slice(0, 2));
    t.deepEqual(await mempool.pendingSince(9_000, 3), hashes.slice(0, 3));
    t.true(await mempool.isPending(hashes[4]!));
    t.false(await mempool.isPending("0x"));
  });

  test(`${engine}: mempool: an empty pool has no size`, async (t) => {
    const mempool = createMempoolStore(await open(t));
    t.deepEqual(await mempool.mempoolSize(), { count: 0, bytes: 0 });
    t.is(await mempool.pendingCount(), 0);
    t.deepEqual(await mempool.pending(10), []);
    t.true((await mempool.pendingPortions(10, 1)[Symbol.asyncIterator]().next()).done);
  });

  test(`${engine}: mempool: transactions wait to be handed on, each on its own to authorities and to peers`, async (t) => {
    const mempool = await fill(await open(t));
    const waiting = async (to: "authority" | "peer", beforeMs: number, limit = 10): Promise<string[]> =>
      (await mempool.pendingToRelay(to, beforeMs, limit)).map(({ hash }) => hash);
    t.deepEqual(await waiting("authority", 1), hashes);
    t.deepEqual(await waiting("authority", 1, 2), hashes.slice(0, 2));
    await mempool.markRelayed("peer", hashes.slice(0, 3), 100);
    t.deepEqual(await waiting("authority", 100), hashes);
    t.deepEqual(await waiting("peer", 100), hashes.slice(3));
    t.deepEqual(await waiting("peer", 101), hashes);
    await mempool.markRelayed("authority", hashes, 200);
    t.deepEqual(await waiting("authority", 200), []);
  });

  test(`${engine}: mempool: what leaves it is gone, and why the newest were turned away is remembered`, async (t) => {
    const database = await open(t);
    const mempool = await fill(database);
    const changes = createMempoolChanges(database.write);
    await changes.remove(hashes.slice(0, 2));
    await changes.reject(hashes[2]!, "It is late.", 1);
    t.is(await mempool.pendingCount(), 2);
    t.false(await mempool.isPending(hashes[2]!));
    t.is(await mempool.rejectionOf(hashes[2]!), "It is late.");
    t.is(await mempool.rejectionOf(hashes[3]!), undefined);
    await changes.reject(hashes[2]!, "It is too late.", 2);
    t.is(await mempool.rejectionOf(hashes[2]!), "It is too late.");

    for (let i = 0; i < 10_000; i += 400) {
      const rows = Array.from({ length: 400 }, (_, k) => ({ hash: `0x${i + k}`, reason: "", rejected_ms: 10 + i + k }));
      await database.write.run((sql) => sql("rejected_transactions").insert(rows));
    }
    await changes.reject(hashes[3]!, "It is the newest.", 20_000);
    t.is(await mempool.rejectionOf(hashes[2]!), undefined);
    t.is(await mempool.rejectionOf("0x0"), undefined);
    t.is(await mempool.rejectionOf("0x1"), "");
    t.is(await mempool.rejectionOf(hashes[3]!), "It is the newest.");
  });

  test(`${engine}: mempool: a write that is tried leaves nothing behind`, async (t) => {
    const database = await open(t);
    await tryWrite(database);
    t.is(await createMempoolStore(database).pendingCount(), 0);
  });
};
