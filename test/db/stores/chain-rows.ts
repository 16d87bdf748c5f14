/** Last nonces of senders, fork evidence, and the writer lease. */
import test from "ava";
import { createSenderStore } from "../../../src/chain/blocks/sender-store.js";
import type { StoreSuite } from "./suite.js";
import { createEvidenceTracker, type Evidence } from "../../../src/chain/blocks/evidence.js";
import { createEvidenceStore } from "../../../src/chain/blocks/evidence-store.js";
import {
  createWriterLeaseStore,
  renewLease,
  leaseMs,
  lockLease,
} from "../../../src/chain/writer/writer-lease-store.js";

const largest = BigInt(Number.MAX_SAFE_INTEGER);

export const testSenders: StoreSuite = (engine, open) => {
  test.serial(`${engine}: senders: the last nonces of 1,000 senders are stored and updated`, async (t) => {
    const { read, write } = await open(t);
    const senders = createSenderStore(read);
    const save = (nonces: ReadonlyMap<string, bigint>) => createSenderStore(write).saveNonces(nonces);
    t.is(await senders.lastNonce("0x1"), undefined);
    const many = new Map(Array.from({ length: 1_000 }, (_, i) => [`0x${i}`, BigInt(i)] as const));
    await save(many);
    t.deepEqual(Object.fromEntries(await senders.lastNonces([...many.keys(), "0xnobody"])), Object.fromEntries(many));
    await save(
      new Map([
        ["0x1", largest],
        ["0xnew", 1n],
      ]),
    );
    t.is(await senders.lastNonce("0x1"), largest);
    t.is(await senders.lastNonce("0x0"), 0n);
    t.is(await senders.lastNonce("0x2"), 2n);
    t.deepEqual(Object.fromEntries(await senders.lastNonces(["0xnew", "0x1"])), { "0x1": largest, "0xnew": 1n });
    t.deepEqual(await senders.lastNonces([]), new Map());
  });
};

const evidenceOf = (identity: string, number: bigint, isResolved = false): Evidence => ({
  identity,
  number,
  headers: [
    { header: Uint8Array.of(1, 0, 255), signature: Uint8Array.of(2) },
    { header: Uint8Array.of(3), signature: Uint8Array.of(4) },
  ],
  seenMs: 1_763_000_000_000,
  isResolved,
});

const plain = (evidence: readonly Evidence[]): unknown[] =>
  evidence.map(({ headers, ...rest }) => ({
    ...rest,
    headers: headers.map(({ header, signature }) => [[...header], [...signature]]),
  }));

export const testEvidence: StoreSuite = (engine, open) => {
  test.serial(
    `${engine}: fork evidence is stored once for each key and block number, with its resolution`,
    async (t) => {
      const store = createEvidenceStore(await open(t));
      t.deepEqual(await store.load(), []);
      await store.save([evidenceOf("0xb", 3n), evidenceOf("0xa", 9_007_199_254_740_991n), evidenceOf("0xa", 2n)]);
      await store.save([evidenceOf("0xa", 2n, true)]);
      t.deepEqual(
        plain(await store.load()),
        plain([evidenceOf("0xa", 2n, true), evidenceOf("0xa", 9_007_199_254_740_991n), evidenceOf("0xb", 3n)]),
      );
    },
  );

  test.serial(`${engine}: evidence that could not be stored is stored with the next call`, async (t) => {
    const store = createEvidenceStore(await open(t));
    const book = createEvidenceTracker({ stored: [], nowMs: () => 5, onFound: () => undefined });
    const signed = (hash: string) => ({
      ...{ number: 4n, proposer: "0xa", hash },
      ...{ header: Buffer.from(hash), signature: Uint8Array.of(1) },
    });
    book.add(signed("one"), signed("other"));
    await t.throwsAsync(
      book.store(() => Promise.reject(new Error("full"))),
      { message: "full" },
    );
    t.deepEqual(await store.load(), []);
    await book.store((evidence) => store.save(evidence));
    t.like((await store.load())[0], { identity: "0xa", number: 4n, seenMs: 5, isResolved: false });
    await book.store(() => Promise.reject(new Error("stored again")));
  });
};

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
