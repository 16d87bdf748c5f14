import test from "ava";
import { createEvidenceTracker, type Evidence } from "../../../src/chain/blocks/evidence.js";
import { createEvidenceStore } from "../../../src/chain/blocks/evidence-store.js";
import type { StoreSuite } from "./suite.js";

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
