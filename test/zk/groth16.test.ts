import { bn254 } from "@noble/curves/bn254.js";
import test from "ava";
import { parseProof, parseVerificationKey, verifyGroth16 } from "../../src/zk/groth16.js";
import { fieldOrder } from "../../src/zk/poseidon.js";
import { proofJson, proveAnything, verificationKeyJson } from "../helpers/chain/groth16.js";

const key = parseVerificationKey(verificationKeyJson);
const signals = [42n, fieldOrder - 1n] as const;
const proof = proveAnything(signals);

test("a proof is valid only for its own public signals", (t) => {
  t.true(verifyGroth16({ key, proof, signals }));
  t.false(verifyGroth16({ key, proof, signals: [43n, signals[1]] }));
  t.false(verifyGroth16({ key, proof, signals: [signals[1], signals[0]] }));
  t.false(
    verifyGroth16({ key, proof, signals: [signals[0] + fieldOrder, signals[1]] }),
    "a signal above the field order is invalid",
  );
  t.false(verifyGroth16({ key, proof, signals: [42n] }));
  t.deepEqual(parseProof(proofJson(signals)), proof);
});

test("a proof with a flipped bit, another length or zero bytes is invalid", (t) => {
  for (const part of ["a", "b", "c"] as const) {
    for (let i = 0; i < proof[part].length; i += 9) {
      const bytes = proof[part].slice();
      bytes[i]! ^= 1 << (i % 8);
      t.false(verifyGroth16({ key, proof: { ...proof, [part]: bytes }, signals }), `${part}, byte ${i}`);
    }
    t.false(verifyGroth16({ key, proof: { ...proof, [part]: proof[part].slice(1) }, signals }));
    t.false(verifyGroth16({ key, proof: { ...proof, [part]: new Uint8Array(proof[part].length) }, signals }));
    t.false(verifyGroth16({ key, proof: { ...proof, [part]: new Uint8Array(0) }, signals }));
  }
});

test("rejects an unusable verification key, and names the member", (t) => {
  const without = (change: object) => () => parseVerificationKey({ ...verificationKeyJson, ...change });
  t.throws(without({ IC: verificationKeyJson.IC.slice(1) }), { message: /not usable at IC/ });
  t.throws(without({ curve: "bls12381" }), { message: /not usable at curve/ });
  t.throws(without({ vk_alpha_1: ["1", "3", "1"] }), { message: /one of its points is not a point of its group/ });
  t.throws(without({ vk_alpha_1: ["x", "2", "1"] }), { message: /not usable at vk_alpha_1.0/ });
  t.throws(() => parseVerificationKey(null), { message: /not usable/ });
  const { x, y } = pointOutsideSubgroup();
  const pair = ({ c0, c1 }: { c0: bigint; c1: bigint }): string[] => [String(c0), String(c1)];
  t.throws(without({ vk_beta_2: [pair(x), pair(y), ["1", "0"]] }), { message: /not a point of its group/ });
});

/** Returns a point on the twisted curve outside the prime-order subgroup, which would make pairings unsound. */
function pointOutsideSubgroup() {
  const { Fp2 } = bn254.fields;
  const b = Fp2.div(Fp2.create({ c0: 3n, c1: 0n }), Fp2.create({ c0: 9n, c1: 1n }));
  for (let c0 = 1n; ; c0++) {
    const x = Fp2.create({ c0, c1: 0n });
    const square = Fp2.add(Fp2.mul(Fp2.sqr(x), x), b);
    try {
      const y = Fp2.sqrt(square);
      if (!bn254.G2.Point.fromAffine({ x, y }).isTorsionFree()) {
        return { x, y };
      }
    } catch {
      // Not a square: no point has this x.
    }
  }
}
