import test from "ava";
import {
  createWriterLeaseStore,
  renewLease,
  leaseMs,
  lockLease,
} from "../../../src/chain/writer/writer-lease-store.js";
import type { StoreSuite } from "./suite.js";

const owner = { host: "a host", machine: "a machine", pid: 7, identity: "0xkey" };

export const testWriterLease: StoreSuite = (engine, open) => {
  test.serial(
    `${engine}: writer lease: the lease is free at first, and belongs to its holder until it is released or expires`,
    async (t) => {
      const database = await open(t);
      const store = createWriterLeaseStore(database);
      t.true(await store.exists());
      const free = await store.read();
      t.like(free, { holder: undefined, epoch: 0, identity: undefined });
      t.true(free.leftMs <= 0);
      t.is(await store.acquire(free, { ...owner, holder: "one" }), 1);
      const held = await store.read();
      t.like(held, { epoch: 1, identity: "0xkey" });
      t.like(held.holder, { holder: "one", host: "a host", machine: "a machine", pid: 7 });
      t.true(held.leftMs > leaseMs / 2 && held.leftMs <= leaseMs);
      // An engine may read its clock separately for each of the two times.
      t.true(Math.abs(held.untilMs - held.holder!.sinceMs - leaseMs) < 100);
      t.is(await store.acquire(free, { ...owner, holder: "two" }), undefined, "the lease changed after it was read");

      const lease = { holder: "one", epoch: 1 };
      await store.release({ ...lease, epoch: 2 });
      t.true((await store.read()).leftMs > 0, "a release with another epoch has an effect");
      await store.release(lease);
      const released = await store.read();
      t.true(released.leftMs <= 0);
      t.is(await store.acquire(released, { ...owner, holder: "two" }), 2);
      t.false(await database.transaction((db) => renewLease(db, lease)), "the previous holder renewed the lease");
      t.false(await database.transaction((db) => lockLease(db, lease)));
    },
  );

  test.serial(`${engine}: writer lease: renewing extends the lease at commit, and locking does not`, async (t) => {
    const database = await open(t);
    const store = createWriterLeaseStore(database);
    await store.acquire(await store.read(), { ...owner, holder: "one" });
    const held = { holder: "one", epoch: 1 };
    await database.write.run((sql) => sql("writer_lease").update({ until_ms: 1 }));
    await t.throwsAsync(
      database.transaction(async (db) => {
        t.true(await renewLease(db, held));
        throw new Error("rolls back");
      }),
    );
    t.is((await store.read()).untilMs, 1);
    t.true(await database.transaction((db) => lockLease(db, held)));
    t.is((await store.read()).untilMs, 1, "locking extended the lease");
    t.true(await database.transaction((db) => renewLease(db, held)), "the holder cannot renew its lease");
    t.true((await store.read()).leftMs > 0);
  });
};
