import test from "ava";
import {
  createWriterLeaseStore,
  renewLease,
  leaseMs,
  lockLease,
} from "../../../src/chain/writer/writer-lease-store.js";
import type { StoreSuite } from "./suite.js";

const place = { host: "a host", machine: "a machine", pid: 7, identity: "0xkey" };

export const testWriterLease: StoreSuite = (engine, open) => {
  test(`${engine}: writer lease: nobody has it at first; who takes it has it until it is released or runs out`, async (t) => {
    const database = await open(t);
    const store = createWriterLeaseStore(database);
    t.true(await store.exists());
    const free = await store.read();
    t.like(free, { holder: undefined, epoch: 0, identity: undefined });
    t.true(free.leftMs <= 0);
    t.is(await store.acquire(free, { ...place, holder: "one" }), 1);
    const held = await store.read();
    t.like(held, { epoch: 1, identity: "0xkey" });
    t.like(held.holder, { holder: "one", host: "a host", machine: "a machine", pid: 7 });
    t.true(held.leftMs > leaseMs / 2 && held.leftMs <= leaseMs);
    // An engine may look at its clock for each of them.
    t.true(Math.abs(held.untilMs - held.holder!.sinceMs - leaseMs) < 100);
    t.is(await store.acquire(free, { ...place, holder: "two" }), undefined, "it is not as it was seen");

    const one = { holder: "one", epoch: 1 };
    await store.release({ ...one, epoch: 2 });
    t.true((await store.read()).leftMs > 0, "who has another one releases nothing");
    await store.release(one);
    const released = await store.read();
    t.true(released.leftMs <= 0);
    t.is(await store.acquire(released, { ...place, holder: "two" }), 2);
    t.false(await database.transaction((db) => renewLease(db, one)), "who had it before has it no longer");
    t.false(await database.transaction((db) => lockLease(db, one)));
  });

  test(`${engine}: writer lease: holding it renews it, in a transaction`, async (t) => {
    const database = await open(t);
    const store = createWriterLeaseStore(database);
    await store.acquire(await store.read(), { ...place, holder: "one" });
    const held = { holder: "one", epoch: 1 };
    await database.write.run((sql) => sql("writer_lease").update({ until_ms: 1 }));
    await t.throwsAsync(
      database.transaction(async (db) => {
        t.true(await renewLease(db, held));
        throw new Error("taken back");
      }),
    );
    t.is((await store.read()).untilMs, 1);
    t.true(await database.transaction((db) => lockLease(db, held)));
    t.is((await store.read()).untilMs, 1, "to share it is not to renew it");
    t.true(await database.transaction((db) => renewLease(db, held)), "nobody took it meanwhile");
    t.true((await store.read()).leftMs > 0);
  });
};
