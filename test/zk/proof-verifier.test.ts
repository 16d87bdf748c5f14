/** Fair scheduling of proofs: senders of invalid proofs delay only themselves, and each proof is verified once. */
import test from "ava";
import { setImmediate as turn } from "node:timers/promises";
import { RpcError } from "../../src/rpc/errors.js";
import { parseVerificationKey } from "../../src/zk/groth16.js";
import { createProofVerifier } from "../../src/zk/proof-verifier.js";
import { verificationKeyJson } from "../helpers/chain/groth16.js";

const key = parseVerificationKey(verificationKeyJson);
const isValid = (signals: readonly bigint[]): boolean => signals[1] === 1n;

/** Creates a verifier with fake threads, which record the proofs and wait until `release` is called. */
function open() {
  const verified: bigint[] = [];
  const waiting: (() => void)[] = [];
  let isBlocked = true;
  const verifier = createProofVerifier(
    {
      threads: 2,
      async verify({ signals }) {
        verified.push(signals[0]!);
        await (isBlocked ? new Promise<void>((resolve) => waiting.push(resolve)) : turn());
        return isValid(signals);
      },
    },
    key,
  );
  return {
    verified,
    /** Verifies the proof with this number for a client, or for a block if the client is undefined. */
    verify: async (client: string | undefined, number: number, valid = false): Promise<boolean | "rejected"> => {
      const proof = { a: new Uint8Array(64), b: new Uint8Array(128), c: new Uint8Array(64) };
      try {
        return await verifier.verify(proof as never, [BigInt(number), valid ? 1n : 0n], client);
      } catch (error) {
        if (error instanceof RpcError && error.reason === "OVERLOADED") {
          return "rejected";
        }
        throw error;
      }
    },
    /** Lets the threads finish. */
    release: (): void => {
      isBlocked = false;
      waiting.forEach((resume) => resume());
    },
  };
}

test("120 clients with invalid proofs do not block honest clients", async (t) => {
  const { verify, release, verified } = open();
  const wrong = Array.from({ length: 120 }, (_, i) => verify(`wrong ${i}`, i));
  const honest = Array.from({ length: 20 }, (_, i) => verify(`honest ${i}`, 1_000 + i, true));
  release();
  t.deepEqual(await Promise.all(honest), new Array(20).fill(true));
  t.deepEqual(await Promise.all(wrong), new Array(120).fill(false));
  // Their later proofs have a lower priority than those of all others.
  const before = verified.length;
  const again = Array.from({ length: 120 }, (_, i) => verify(`wrong ${i}`, 2_000 + i));
  const late = Array.from({ length: 20 }, (_, i) => verify(`honest ${i}`, 3_000 + i, true));
  await Promise.all([...again, ...late]);
  const order = verified.slice(before);
  t.true(order.indexOf(3_019n) <= 22, String(order));
});

test("a client that floods gets at most 18 proofs verified, and others are served next", async (t) => {
  const { verify, release, verified } = open();
  const flood = Array.from({ length: 1_000 }, (_, i) => verify("one", i));
  const other = verify("other", 5_000, true);
  release();
  t.true(await other);
  t.deepEqual(verified.slice(0, 4), [0n, 1n, 2n, 5_000n]);
  const outcomes = await Promise.all(flood);
  t.is(outcomes.filter((outcome) => outcome !== "rejected").length, 2 + 16);
});

test("a full queue rejects proofs of the clients with the most", async (t) => {
  const { verify, release } = open();
  const floods = Array.from({ length: 20 }, (_, client) =>
    Array.from({ length: 16 }, (_, i) => verify(`flood ${client}`, 100 * client + i)),
  );
  const honest = Array.from({ length: 20 }, (_, i) => verify(`honest ${i}`, 10_000 + i, true));
  release();
  t.deepEqual(await Promise.all(honest), new Array(20).fill(true));
  t.true((await Promise.all(floods.flat())).filter((outcome) => outcome === "rejected").length >= 20);
});

test("proofs of blocks go first, and are never rejected", async (t) => {
  const { verify, release, verified } = open();
  const flood = Array.from({ length: 300 }, (_, i) => verify(`sender ${i}`, i));
  // A proof that is queued already, and a new one.
  const block = [verify(undefined, 200), verify(undefined, 9_000, true)];
  release();
  t.deepEqual(await Promise.all(block), [false, true]);
  t.deepEqual(verified.slice(2, 4), [200n, 9_000n]);
  t.is((await Promise.all(flood)).filter((outcome) => outcome === "rejected").length, 300 - 2 - 256);
});

test("a proof is verified once, for any number of transactions", async (t) => {
  const { verify, release, verified } = open();
  const concurrent = Array.from({ length: 500 }, (_, i) => verify(`sender ${i}`, 7));
  release();
  t.deepEqual(await Promise.all(concurrent), new Array(500).fill(false));
  t.false(await verify("client", 7));
  t.true(await verify("client", 8, true));
  t.true(await verify(undefined, 8, true));
  t.deepEqual(verified, [7n, 8n]);
});

test("an honest proof does not wait for a flood that contains it", async (t) => {
  const { verify, release, verified } = open();
  const flood = Array.from({ length: 18 }, (_, i) => verify("copycat", i, i === 17));
  const honest = verify("honest", 17, true);
  release();
  t.true(await honest);
  t.true(verified.indexOf(17n) <= 3, String(verified));
  await Promise.all(flood);
});

test("points of a wrong length are rejected without a thread", async (t) => {
  const { verify } = createProofVerifier({ threads: 1, verify: () => Promise.reject(new Error("called")) }, key);
  const proof = { a: new Uint8Array(65), b: new Uint8Array(127), c: new Uint8Array(64) } as never;
  t.false(await verify(proof, [1n, 1n], "client"));
});

test("a thread that ends gives a transient error, not a result", async (t) => {
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
