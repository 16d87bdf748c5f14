/** Nullifiers and the commitment tree. */
import test from "ava";
import { isDatabaseError } from "../../../src/base/errors/database-error-kind.js";
import { createWriteBuffer } from "../../../src/db/rows/write-buffer.js";
import { createNullifierChanges, createNullifierStore } from "../../../src/zk/nullifier-store.js";
import type { StoreSuite } from "./suite.js";
import { CorruptionError } from "../../../src/base/errors/corruption.js";
import { toHex } from "../../../src/zk/poseidon.js";
import { createTreeChanges, createTreeStore } from "../../../src/zk/tree-store.js";

export const testNullifiers: StoreSuite = (engine, open) => {
  test.serial(`${engine}: nullifiers: a nullifier is spent once, and is found with its use`, async (t) => {
    const { read, transaction } = await open(t);
    const nullifiers = createNullifierStore(read);
    const use = { blockNumber: 7n, transactionHash: "0xt" };
    t.deepEqual(await nullifiers.find("0x1"), { hash: "0x1", use: undefined });
    await transaction(async (db) => {
      const rows = createWriteBuffer(db);
      const changes = createNullifierChanges(rows);
      await changes.prefetch(["0x1"]);
      t.is((await changes.find("0x1")).use, undefined);
      changes.insert("0x1", use);
      t.deepEqual((await changes.find("0x1")).use, use);
      await rows.store();
      t.deepEqual((await createNullifierStore(db).find("0x1")).use, use);
      t.is((await nullifiers.find("0x1")).use, undefined, "the use is visible before its commit");
    });
    t.deepEqual(await nullifiers.find("0x1"), { hash: "0x1", use });
    const twice = await t.throwsAsync(
      transaction(async (db) => {
        const rows = createWriteBuffer(db);
        createNullifierChanges(rows).insert("0x1", use);
        await rows.store();
      }),
    );
    t.false(isDatabaseError(twice));
    t.is((await nullifiers.find("0x2")).use, undefined);
  });
};

/** Tests in test/zk compare the results for real trees with those of another implementation. */
export const testTree: StoreSuite = (engine, open) => {
  test.serial(`${engine}: tree: nodes and a root are stored together, or not at all`, async (t) => {
    const { read, write, transaction } = await open(t);
    await write.run((sql) => sql("blocks").insert([0, 1].map((number) => ({ number, hash: number, timestamp_ms: 0 }))));
    const [tree, changes] = [createTreeStore(read), createTreeChanges(read)];
    const empty = await tree.root();
    t.like(empty, { blockNumber: 0n, leafCount: 0 });
    const leaves = Array.from({ length: 1_000 }, (_, i) => BigInt(i + 1));
    const root = {
      root: toHex(99n),
      leafCount: 1_000,
      frontier: new Array<bigint>(19).fill(5n),
    };
    const store = (): Promise<void> =>
      transaction(async (db) => {
        const inTransaction = createTreeChanges(db);
        await inTransaction.insertNodes([
          { level: 0, position: 0, hashes: leaves },
          { level: 3, position: 124, hashes: [77n] },
        ]);
        await inTransaction.insertRoot(root, { number: 1n, timeMs: 0 });
        t.is((await inTransaction.latest()).leafCount, 1_000);
        t.true(await inTransaction.has(toHex(1_000n)));
      });
    await t.throwsAsync(
      transaction(async (db) => {
        await createTreeChanges(db).insertNodes([{ level: 0, position: 0, hashes: [1n] }]);
        throw new Error("the block does not fit");
      }),
      { message: "the block does not fit" },
    );
    t.false(await changes.has(toHex(1n)));
    t.deepEqual(await tree.root(), empty);

    await store();
    t.true(await changes.has(toHex(1n)));
    t.false(await changes.has(toHex(1_001n)));
    t.is((await changes.latest()).leafCount, 1_000);
    t.deepEqual(await tree.root(), { root: root.root, blockNumber: 1n, leafCount: 1_000 });
    t.deepEqual(await tree.rootAfter(0n), empty);
    t.is(await tree.rootAfter(2n), undefined);
    t.is(await tree.rootAfter(2n ** 60n), undefined);
    // 1,000 leaves: an odd number of complete nodes on the levels 3, 5, 6, 7, 8 and 9, of which one was stored.
    t.deepEqual(await changes.peaks(1_000), { 3: 77n });
    const next = { number: 2n, timeMs: 0 };
    t.true(await changes.isKnownRoot(root.root, next));
    t.true(await changes.isKnownRoot(empty.root, next));
    t.false(await changes.isKnownRoot(toHex(98n), next));
    // These nodes lead to no root: real paths are in test/zk.
    await t.throwsAsync(async () => tree.path(toHex(7n), undefined), {
      instanceOf: CorruptionError,
      message: /does not lead to the root/,
    });
    t.deepEqual(await tree.path(toHex(7n), empty.root), { missing: "commitment under this root" });
    t.deepEqual(await tree.path(toHex(7n), toHex(98n)), { missing: "root" });
    await t.throwsAsync(store(), undefined, "the same leaves were stored twice");
  });
};
