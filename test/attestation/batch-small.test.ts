/** Batches of small presentations, and the retry after one of them ends the thread. */
import test from "ava";
import { batchSmall } from "../../src/attestation/worker-pool.js";
import type { Verdict } from "../../src/attestation/presentation.js";

const small = (name: number): Uint8Array => new Uint8Array(100).fill(name);
const large = (name: number): Uint8Array => new Uint8Array(20_000).fill(name);
const verdictOf = (bytes: Uint8Array): Verdict => ({ rejected: `number ${bytes[0]}` });

/** Starts a fake thread that ends at some presentations, and records its batches. */
function start(fatal: readonly number[] = []) {
  const tasks: number[][] = [];
  const verify = batchSmall(async (presentations) => {
    const names = presentations.map((bytes) => bytes[0]!);
    tasks.push(names);
    await new Promise(setImmediate);
    const fatalName = names.find((name) => fatal.includes(name));
    if (fatalName !== undefined) {
      throw new Error(`The thread ended at ${names.join()}.`);
    }
    return presentations.map(verdictOf);
  });
  return { verify, tasks };
}

test("batches waiting small presentations in order, and sends large ones alone", async (t) => {
  const { verify, tasks } = start();
  const presentations = [
    small(1),
    small(2),
    small(3),
    large(4),
    large(5),
    ...Array.from({ length: 10 }, (_, i) => small(6 + i)),
  ];
  t.deepEqual(await Promise.all(presentations.map(verify)), presentations.map(verdictOf));
  t.deepEqual(tasks, [[1], [2, 3], [4], [5], [6, 7, 8, 9, 10, 11, 12, 13], [14, 15]]);
  t.deepEqual(await verify(small(16)), verdictOf(small(16)));
});

test("if the thread ends at a batch, each of its presentations is verified alone", async (t) => {
  const { verify, tasks } = start([3]);
  const outcomes = await Promise.allSettled([1, 2, 3, 4].map((name) => verify(small(name))));
  t.deepEqual(
    outcomes.map(({ status }) => status),
    ["fulfilled", "fulfilled", "rejected", "fulfilled"],
  );
  t.regex(String((outcomes[2] as PromiseRejectedResult).reason), /ended at 3\./);
  t.deepEqual(tasks, [[1], [2, 3, 4], [2], [3], [4]]);
});
