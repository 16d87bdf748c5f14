import test from "ava";
import { toBinary } from "@bufbuild/protobuf";
import { TransactionSchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { createMempoolStore } from "../../../src/chain/blocks/mempool-store.js";
import type { PendingEntry, Rejection } from "../../../src/chain/blocks/store-types.js";
import type { MempoolStore } from "../../../src/chain/blocks/mempool-store.js";
import { verifyTransaction } from "../../../src/chain/transactions/transaction.js";
import type { Database } from "../../../src/db/queries/database.js";
import { createPublic, signTransaction, rulesOf } from "../../helpers/chain/transactions.js";
import { testKey } from "../../helpers/chain/keys.js";
import type { StoreSuite } from "./suite.js";

const transactions = Array.from({ length: 5 }, (_, i) =>
  verifyTransaction(signTransaction(testKey(2), i + 1, createPublic(`p${i}`, "{}")), rulesOf()),
);
const hashes = transactions.map(({ hash }) => hash);
const bytesOf = (i: number): Uint8Array => toBinary(TransactionSchema, transactions[i]!.signed);

/** Entries of these transactions, received at 5,000, 5,001 and so on. */
const entries: readonly PendingEntry[] = transactions.map(({ hash, body }, i) => ({
  ...{ hash, sender: body.sender, nonce: body.nonce, sizeBytes: bytesOf(i).length },
  // The first has the lowest timestamp, the second has no source: this node submitted it.
  timestampMs: i === 0 ? -(2n ** 63n) : body.timestampMs,
  source: i === 1 ? undefined : `2001:db8:${i}:0::/64`,
  receivedMs: 5_000 + i,
  expiresMs: 9_000 + i,
  afterNonce: i === 2 ? 7n : undefined,
}));

async function fill(database: Database): Promise<MempoolStore> {
  const mempool = createMempoolStore(database.mempool);
  // Concurrent calls, so that the entries are stored in one batch.
  await Promise.all(entries.map((entry, i) => mempool.insertPending(entry, bytesOf(i))));
  return mempool;
}

const rejection = (hash: string, reason: string, rejectedMs: number, expiresMs = 9_000): Rejection => ({
  ...{ hash, reason, rejectedMs, expiresMs },
});

export const testMempool: StoreSuite = (engine, open) => {
  test.serial(
    `${engine}: mempool: pending transactions are read unchanged, in the order of their arrival`,
    async (t) => {
      const mempool = await fill(await open(t));
      await mempool.insertPending({ ...entries[0]!, receivedMs: 9_000 }, bytesOf(0));
      t.deepEqual(await mempool.oldestPending(10), entries);
      t.deepEqual(await mempool.oldestPending(2), entries.slice(0, 2));
      const read = await mempool.readPending([...hashes, "0x"]);
      t.deepEqual(
        hashes.map((hash) => Buffer.from(toBinary(TransactionSchema, read.get(hash)!))),
        hashes.map((_, i) => Buffer.from(bytesOf(i))),
      );
      t.is(read.size, 5);
      t.is(await mempool.pendingCount(), 5);
      t.true(await mempool.isPending(hashes[4]!));
      t.false(await mempool.isPending("0x"));
    },
  );

  test.serial(`${engine}: mempool: an empty pool has no transactions, also after a test write`, async (t) => {
    const mempool = createMempoolStore((await open(t)).mempool);
    await mempool.tryWrite();
    t.is(await mempool.pendingCount(), 0);
    t.deepEqual(await mempool.oldestPending(10), []);
    t.is((await mempool.readPending([])).size, 0);
    await mempool.remove({ included: [], rejected: [] });
  });

  test.serial(
    `${engine}: mempool: an undecodable transaction is reported differently from a missing one`,
    async (t) => {
      const database = await open(t);
      const mempool = await fill(database);
      await database.mempool.write.run((sql) =>
        sql("pending_transactions")
          .where({ hash: hashes[2]! })
          .update({ bytes: Buffer.from([0xff]) }),
      );
      const read = await mempool.readPending([hashes[2]!, "0x"]);
      t.deepEqual([...read], [[hashes[2]!, undefined]]);
    },
  );

  test.serial(
    `${engine}: mempool: removed transactions are not pending, and rejection reasons are stored until they expire`,
    async (t) => {
      const mempool = await fill(await open(t));
      await mempool.remove({ included: hashes.slice(0, 2), rejected: [rejection(hashes[2]!, "It is late.", 1)] });
      t.is(await mempool.pendingCount(), 2);
      t.false(await mempool.isPending(hashes[2]!));
      t.is(await mempool.rejectionOf(hashes[2]!), "It is late.");
      t.is(await mempool.rejectionOf(hashes[3]!), undefined);
      await mempool.remove({ included: [], rejected: [rejection(hashes[2]!, "It is too late.", 2)] });
      t.is(await mempool.rejectionOf(hashes[2]!), "It is too late.");
      await mempool.deleteOldRejections(9_000);
      t.is(await mempool.rejectionOf(hashes[2]!), "It is too late.");
      await mempool.deleteOldRejections(9_001);
      t.is(await mempool.rejectionOf(hashes[2]!), undefined);
    },
  );

  test.serial(`${engine}: mempool: above the limit on rejections, only the latest are stored`, async (t) => {
    const database = await open(t);
    const mempool = createMempoolStore(database.mempool);
    const digits =
      "SELECT 0 AS d" + " UNION ALL SELECT ".concat([1, 2, 3, 4, 5, 6, 7, 8, 9].join(" UNION ALL SELECT "));
    const number = "100000 * (f.d % 2) + 10000 * e.d + 1000 * d.d + 100 * c.d + 10 * b.d + a.d";
    await database.mempool.write.run((sql) =>
      sql.raw(
        `INSERT INTO rejected_transactions (hash, reason, rejected_ms, expires_ms)
         SELECT 'n' || (${number}), '', ${number}, 1000000
         FROM (${digits}) a, (${digits}) b, (${digits}) c, (${digits}) d, (${digits}) e,
              (SELECT 0 AS d UNION ALL SELECT 1) f`,
      ),
    );
    await mempool.remove({ included: [], rejected: [rejection("newest", "It is the newest.", 1_000_000, 1_000_000)] });
    t.is(await mempool.rejectionOf("n0"), "");
    await mempool.deleteOldRejections(0);
    t.is(await mempool.rejectionOf("n0"), undefined);
    t.is(await mempool.rejectionOf("n1"), "");
    t.is(await mempool.rejectionOf("newest"), "It is the newest.");
  });
};
