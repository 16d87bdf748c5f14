import test from "ava";
import { isDatabaseError } from "../../../src/base/errors/database-error-kind.js";
import { createWriteBuffer } from "../../../src/db/rows/write-buffer.js";
import { createNullifierChanges, createNullifierStore } from "../../../src/zk/nullifier-store.js";
import type { StoreSuite } from "./suite.js";

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
