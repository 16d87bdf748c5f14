/** Who sends wrong proofs delays nobody but itself, and every proof is verified once. */
import test from "ava";
import { setImmediate as turn } from "node:timers/promises";
import { RpcError } from "../../src/rpc/errors.js";
import { parseVerificationKey } from "../../src/zk/groth16.js";
import { createProofVerifier } from "../../src/zk/proof-verifier.js";
import { verificationKeyJson } from "../helpers/chain/groth16.js";

const key = parseVerificationKey(verificationKeyJson);
const isRight = (signals: readonly bigint[]): boolean => signals[1] === 1n;

/** A verifier whose threads say what {@link isRight} says, in the order in which they are asked. */
function open() {
  const verified: bigint[] = [];
  const held: (() => void)[] = [];
  let isHolding = true;
  const verifier = createProofVerifier(
    {
      threads: 2,
      async verify({ signals }) {
        verified.push(signals[0]!);
        await (isHolding ? new Promise<void>((resolve) => held.push(resolve)) : turn());
        return isRight(signals);
      },
    },
    key,
  );
  return {
    verified,
    /** A proof by its number. */
    ask: async (askedBy: string | undefined, number: number, right = false): Promise<boolean | "refused"> => {
      const proof = { a: new Uint8Array(64), b: new Uint8Array(128), c: new Uint8Array(64) };
      try {
        return await verifier.verify(proof as never, [BigInt(number), right ? 1n : 0n], askedBy);
      } catch (error) {
        if (error instanceof RpcError && error.reason === "OVERLOADED") {
          return "refused";
        }
        throw error;
      }
    },
    /** Lets the threads go on. */
    release: (): void => {
      isHolding = false;
      held.forEach((go) => go());
    },
  };
}

test("120 clients of wrong proofs keep no honest one out", async (t) => {
  const { ask, release, verified } = open();
  const wrong = Array.from({ length: 120 }, (_, i) => ask(`wrong ${i}`, i));
  const honest = Array.from({ length: 20 }, (_, i) => ask(`honest ${i}`, 1_000 + i, true));
  release();
  t.deepEqual(await Promise.all(honest), new Array(20).fill(true));
  t.deepEqual(await Promise.all(wrong), new Array(120).fill(false));
  // They are known now: with new proofs they come after everybody else.
  const before = verified.length;
  const again = Array.from({ length: 120 }, (_, i) => ask(`wrong ${i}`, 2_000 + i));
  const late = Array.from({ length: 20 }, (_, i) => ask(`honest ${i}`, 3_000 + i, true));
  await Promise.all([...again, ...late]);
  const order = verified.slice(before);
  t.true(order.indexOf(3_019n) <= 22, String(order));
});

test("of one who asks for much, most is refused, and others have their turn next", async (t) => {
  const { ask, release, verified } = open();
  const flood = Array.from({ length: 1_000 }, (_, i) => ask("one", i));
  const other = ask("other", 5_000, true);
  release();
  t.true(await other);
  t.deepEqual(verified.slice(0, 4), [0n, 1n, 2n, 5_000n]);
  const outcomes = await Promise.all(flood);
  t.is(outcomes.filter((outcome) => outcome !== "refused").length, 2 + 16);
});

test("where there is no room, who takes most gives some", async (t) => {
  const { ask, release } = open();
  const floods = Array.from({ length: 20 }, (_, who) =>
    Array.from({ length: 16 }, (_, i) => ask(`flood ${who}`, 100 * who + i)),
  );
  const honest = Array.from({ length: 20 }, (_, i) => ask(`honest ${i}`, 10_000 + i, true));
  release();
  t.deepEqual(await Promise.all(honest), new Array(20).fill(true));
  t.true((await Promise.all(floods.flat())).filter((outcome) => outcome === "refused").length >= 20);
});

test("a block waits for nobody, and is not refused", async (t) => {
  const { ask, release, verified } = open();
  const flood = Array.from({ length: 300 }, (_, i) => ask(`sender ${i}`, i));
  // One that waits already, far back, and one that is new.
  const block = [ask(undefined, 200), ask(undefined, 9_000, true)];
  release();
  t.deepEqual(await Promise.all(block), [false, true]);
  t.deepEqual(verified.slice(2, 4), [200n, 9_000n]);
  t.is((await Promise.all(flood)).filter((outcome) => outcome === "refused").length, 300 - 2 - 256);
});

test("a proof is verified once, wrong or right, in however many transactions", async (t) => {
  const { ask, release, verified } = open();
  const atOnce = Array.from({ length: 500 }, (_, i) => ask(`sender ${i}`, 7));
  release();
  t.deepEqual(await Promise.all(atOnce), new Array(500).fill(false));
  t.false(await ask("somebody", 7));
  t.true(await ask("somebody", 8, true));
  t.true(await ask(undefined, 8, true));
  t.deepEqual(verified, [7n, 8n]);
});

test("a proof that a flood asked for first does not wait for the flood", async (t) => {
  const { ask, release, verified } = open();
  const flood = Array.from({ length: 18 }, (_, i) => ask("copycat", i, i === 17));
  const honest = ask("honest", 17, true);
  release();
  t.true(await honest);
  t.true(verified.indexOf(17n) <= 3, String(verified));
  await Promise.all(flood);
});

test("points of another length are no proof, and cost no thread", async (t) => {
  const { verify } = createProofVerifier({ threads: 1, verify: () => Promise.reject(new Error("asked")) }, key);
  const proof = { a: new Uint8Array(65), b: new Uint8Array(127), c: new Uint8Array(64) } as never;
  t.false(await verify(proof, [1n, 1n], "somebody"));
});

test("a thread that ends is a reason to try again, and no verdict", async (t) => {
  let fails = true;
  const { verify } = createProofVerifier(
    { threads: 1, verify: () => (fails ? Promise.reject(new Error("The thread ended.")) : Promise.resolve(true)) },
    key,
  );
  const proof = { a: new Uint8Array(64), b: new Uint8Array(128), c: new Uint8Array(64) } as never;
  const failure = await t.throwsAsync(verify(proof, [1n, 1n], undefined), { instanceOf: RpcError });
  t.like(failure, { reason: "OVERLOADED", kind: { transient: true } });
  fails = false;
  t.true(await verify(proof, [1n, 1n], undefined));
});
