import test from "ava";
import { createEvidenceTracker, type Evidence } from "../../src/chain/blocks/evidence.js";
import { createSignedHeaders, type SignedHeader } from "../../src/chain/blocks/signed-headers.js";

const headerOf = (number: bigint, hash: string, proposer = "0xa"): SignedHeader => ({
  ...{ number, proposer, hash },
  ...{ header: Buffer.from(`${number} ${hash}`), signature: Buffer.from(hash) },
});

function openBook(stored: readonly Evidence[] = []) {
  const found: Evidence[] = [];
  const book = createEvidenceTracker({ stored, nowMs: () => 1, onFound: (evidence) => found.push(evidence) });
  const fork = (number: bigint, proposer = "0xa"): void =>
    book.add(headerOf(number, "one", proposer), headerOf(number, "other", proposer));
  return { book, found, fork };
}

const numbersOf = (evidence: readonly Evidence[]): string[] =>
  evidence.map(({ identity, number }) => `${identity} ${number}`);

test("evidence is kept once for a key and number, and no more of one key than says something", (t) => {
  const { book, found, fork } = openBook();
  for (let number = 1n; number <= 40n; number++) {
    fork(number);
    fork(number);
  }
  fork(7n, "0xb");
  t.is(found.length, 11);
  t.deepEqual(numbersOf(book.unresolved()), [...Array.from({ length: 10 }, (_, i) => `0xa ${i + 1}`), "0xb 7"]);
});

test("what was dealt with stays so, in every number of it; what comes later is another fork", async (t) => {
  const { book, found, fork } = openBook();
  fork(5n);
  book.resolve();
  t.deepEqual(book.unresolved(), []);
  fork(5n);
  fork(4n);
  fork(4n, "0xb");
  fork(6n);
  t.deepEqual(numbersOf(book.unresolved()), ["0xa 6", "0xb 4"]);
  t.deepEqual(numbersOf(found), ["0xa 5", "0xb 4", "0xa 6"]);
  const stored: Evidence[] = [];
  await book.store((evidence) => {
    stored.push(...evidence);
    return Promise.resolve();
  });
  t.deepEqual(
    stored.filter(({ isResolved }) => isResolved).map(({ number }) => number),
    [5n, 4n],
  );
  t.deepEqual(numbersOf(openBook(stored).book.unresolved()), ["0xa 6", "0xb 4"]);
});

test("two headers of one number and key are a fork, whichever way they come and in whichever order", async (t) => {
  const forks: string[][] = [];
  const errors: unknown[] = [];
  const stored = new Map([[3n, headerOf(3n, "stored")]]);
  const headers = createSignedHeaders({
    authorities: ["0xa", "0xb"],
    storedHeader: (number) =>
      number === 99n ? Promise.reject(new Error("away")) : Promise.resolve(stored.get(number)),
    onFork: (one, other) => forks.push([one.hash, other.hash]),
    onError: (error) => errors.push(error),
  });
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  for (const [signed, expected] of [
    [headerOf(3n, "stored"), []],
    [headerOf(4n, "one"), []],
    [headerOf(4n, "one", "0xb"), []],
    [headerOf(4n, "other"), [["one", "other"]]],
    [headerOf(4n, "one", "0xc"), []],
    [headerOf(4n, "other", "0xc"), []],
    [headerOf(3n, "heard"), [["stored", "heard"]]],
    [headerOf(99n, "one"), []],
  ] as const) {
    headers.addReceived(signed);
    await settle();
    t.deepEqual(forks.splice(0), expected as unknown as string[][], signed.hash);
  }
  t.is(errors.length, 1);
  // A block that is applied, after another one was heard of.
  headers.addReceived(headerOf(6n, "heard"));
  await settle();
  headers.addApplied(headerOf(6n, "applied"));
  t.deepEqual(forks, [["heard", "applied"]]);
  t.is(headers.latestNumber(), 99n);
});

test("the newest header is one that an authority has signed", (t) => {
  const headers = createSignedHeaders({
    authorities: ["0xa"],
    storedHeader: () => Promise.resolve(undefined),
    onFork: () => t.fail(),
    onError: () => t.fail(),
  });
  t.is(headers.latestNumber(), 0n);
  headers.addReceived(headerOf(9n, "x", "0xstranger"));
  t.is(headers.latestNumber(), 0n);
  headers.addReceived(headerOf(5n, "x"));
  headers.addApplied(headerOf(4n, "x"));
  t.is(headers.latestNumber(), 5n);
});

test("a header that is remembered keeps nothing of the block that it came in", (t) => {
  const kept: SignedHeader[] = [];
  const headers = createSignedHeaders({
    authorities: ["0xa"],
    storedHeader: () => Promise.resolve(undefined),
    onFork: (one, other) => kept.push(one, other),
    onError: (error) => t.fail(String(error)),
  });
  const inBlock = (hash: string): SignedHeader => {
    const block = Buffer.alloc(3 * 1024 * 1024, hash);
    return { ...headerOf(1n, hash), header: block.subarray(5, 105), signature: block.subarray(200, 264) };
  };
  headers.addApplied(inBlock("one"));
  headers.addReceived(inBlock("other"));
  t.deepEqual(
    kept.map(({ header, signature }) => [header.buffer.byteLength, signature.buffer.byteLength]),
    [
      [100, 64],
      [100, 64],
    ],
  );
  t.deepEqual(Buffer.from(kept[0]!.header), inBlock("one").header);
});
