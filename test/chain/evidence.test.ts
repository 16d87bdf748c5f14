import test from "ava";
import {
  createEvidenceTracker,
  type Evidence,
  createSignedHeaders,
  type SignedHeader,
} from "../../src/chain/blocks/evidence.js";

const headerOf = (number: bigint, hash: string, proposer = "0xa"): SignedHeader => ({
  ...{ number, proposer, hash },
  ...{ header: Buffer.from(`${number} ${hash}`), signature: Buffer.from(hash) },
});

function openTracker(stored: readonly Evidence[] = []) {
  const found: Evidence[] = [];
  const tracker = createEvidenceTracker({ stored, nowMs: () => 1, onFound: (evidence) => found.push(evidence) });
  const fork = (number: bigint, proposer = "0xa"): void =>
    tracker.add(headerOf(number, "one", proposer), headerOf(number, "other", proposer));
  return { tracker, found, fork };
}

const numbersOf = (evidence: readonly Evidence[]): string[] =>
  evidence.map(({ identity, number }) => `${identity} ${number}`);

test("stores evidence once for each key and number, and at most 10 unresolved entries for a key", (t) => {
  const { tracker, found, fork } = openTracker();
  for (let number = 1n; number <= 40n; number++) {
    fork(number);
    fork(number);
  }
  fork(7n, "0xb");
  t.is(found.length, 11);
  t.deepEqual(numbersOf(tracker.unresolved()), [...Array.from({ length: 10 }, (_, i) => `0xa ${i + 1}`), "0xb 7"]);
});

test("evidence up to a resolved number counts as resolved; a higher number is a new fork", async (t) => {
  const { tracker, found, fork } = openTracker();
  fork(5n);
  tracker.resolve();
  t.deepEqual(tracker.unresolved(), []);
  fork(5n);
  fork(4n);
  fork(4n, "0xb");
  fork(6n);
  t.deepEqual(numbersOf(tracker.unresolved()), ["0xa 6", "0xb 4"]);
  t.deepEqual(numbersOf(found), ["0xa 5", "0xb 4", "0xa 6"]);
  const stored: Evidence[] = [];
  await tracker.store((evidence) => {
    stored.push(...evidence);
    return Promise.resolve();
  });
  t.deepEqual(
    stored.filter(({ isResolved }) => isResolved).map(({ number }) => number),
    [5n, 4n],
  );
  t.deepEqual(numbersOf(openTracker(stored).tracker.unresolved()), ["0xa 6", "0xb 4"]);
});

test("reports a fork for two headers with one number and key, received, stored or applied, in any order", async (t) => {
  const forks: string[][] = [];
  const errors: unknown[] = [];
  const stored = new Map([[3n, headerOf(3n, "stored")]]);
  const headers = createSignedHeaders({
    authorities: ["0xa", "0xb"],
    storedHeader: (number) =>
      number === 99n ? Promise.reject(new Error("database unavailable")) : Promise.resolve(stored.get(number)),
    onFork: (one, other) => forks.push([one.hash, other.hash]),
    onError: (error) => errors.push(error),
  });
  const untilCompared = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  for (const [signed, expected] of [
    [headerOf(3n, "stored"), []],
    [headerOf(4n, "one"), []],
    [headerOf(4n, "one", "0xb"), []],
    [headerOf(4n, "other"), [["one", "other"]]],
    [headerOf(4n, "one", "0xc"), []],
    [headerOf(4n, "other", "0xc"), []],
    [headerOf(3n, "received"), [["stored", "received"]]],
    [headerOf(99n, "one"), []],
  ] as const) {
    headers.addReceived(signed);
    await untilCompared();
    t.deepEqual(forks.splice(0), expected as unknown as string[][], signed.hash);
  }
  t.is(errors.length, 1);
  // A received header, followed by a different applied block.
  headers.addReceived(headerOf(6n, "received"));
  await untilCompared();
  headers.addApplied(headerOf(6n, "applied"));
  t.deepEqual(forks, [["received", "applied"]]);
  t.is(headers.latestNumber(), 99n);
});

test("the latest number counts only headers that an authority has signed", (t) => {
  const headers = createSignedHeaders({
    authorities: ["0xa"],
    storedHeader: () => Promise.resolve(undefined),
    onFork: () => t.fail(),
    onError: () => t.fail(),
  });
  t.is(headers.latestNumber(), 0n);
  headers.addReceived(headerOf(9n, "x", "0xunlisted"));
  t.is(headers.latestNumber(), 0n);
  headers.addReceived(headerOf(5n, "x"));
  headers.addApplied(headerOf(4n, "x"));
  t.is(headers.latestNumber(), 5n);
});

test("a cached header does not retain the block that contained it", (t) => {
  const reported: SignedHeader[] = [];
  const headers = createSignedHeaders({
    authorities: ["0xa"],
    storedHeader: () => Promise.resolve(undefined),
    onFork: (one, other) => reported.push(one, other),
    onError: (error) => t.fail(String(error)),
  });
  const inBlock = (hash: string): SignedHeader => {
    const block = Buffer.alloc(3 * 1024 * 1024, hash);
    return { ...headerOf(1n, hash), header: block.subarray(5, 105), signature: block.subarray(200, 264) };
  };
  headers.addApplied(inBlock("one"));
  headers.addReceived(inBlock("other"));
  t.deepEqual(
    reported.map(({ header, signature }) => [header.buffer.byteLength, signature.buffer.byteLength]),
    [
      [100, 64],
      [100, 64],
    ],
  );
  t.deepEqual(Buffer.from(reported[0]!.header), inBlock("one").header);
});
