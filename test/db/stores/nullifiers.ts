import test from "ava";
import { isDatabaseTrouble } from "../../../src/base/database-trouble.js";
import { createNullifierStore } from "../../../src/zk/nullifier-store.js";
import type { StoreSuite } from "./suite.js";

export const testNullifiers: StoreSuite = (engine, open) => {
  test(`${engine}: nullifiers: one is spent once, and is found where it was`, async (t) => {
    const { read, transaction } = await open(t);
    const nullifiers = createNullifierStore(read);
    const use = { blockNumber: 7n, transactionHash: "0xt" };
    t.deepEqual(await nullifiers.find("0x1"), { hash: "0x1", use: undefined });
    await transaction(async (db) => {
      const inside = createNullifierStore(db);
      await inside.insert("0x1", use);
      t.deepEqual((await inside.find("0x1")).use, use);
      t.is((await nullifiers.find("0x1")).use, undefined, "nobody else sees it yet");
    });
    t.deepEqual(await nullifiers.find("0x1"), { hash: "0x1", use });
    const twice = await t.throwsAsync(transaction((db) => createNullifierStore(db).insert("0x1", use)));
    t.false(isDatabaseTrouble(twice));
    t.is((await nullifiers.find("0x2")).use, undefined);
  });
};
