/** A Groth16 key with a known trapdoor, so that tests can prove anything. */
import { bn254 } from "@noble/curves/bn254.js";
import { encodeWords } from "../../../src/zk/groth16.js";

const { Fr } = bn254.fields;
const G1 = bn254.G1.Point;
const G2 = bn254.G2.Point;

const trapdoor = { alpha: 3n, beta: 5n, gamma: 7n, delta: 11n, ic: [13n, 17n, 19n] as const };

const decimals = (scalar: bigint): string[] => {
  const { x, y } = G1.BASE.multiply(scalar).toAffine();
  return [String(x), String(y), "1"];
};
const decimals2 = (scalar: bigint): string[][] => {
  const { x, y } = G2.BASE.multiply(scalar).toAffine();
  return [
    [String(x.c0), String(x.c1)],
    [String(y.c0), String(y.c1)],
    ["1", "0"],
  ];
};

/** The verification key in the format of circom. */
export const verificationKeyJson = {
  protocol: "groth16",
  curve: "bn128",
  nPublic: 2,
  vk_alpha_1: decimals(trapdoor.alpha),
  vk_beta_2: decimals2(trapdoor.beta),
  vk_gamma_2: decimals2(trapdoor.gamma),
  vk_delta_2: decimals2(trapdoor.delta),
  IC: trapdoor.ic.map(decimals),
};

/** The scalars of a valid proof: A and B are free, and C follows from the equation of the verifier. */
function scalarsFor(signals: readonly [bigint, bigint]) {
  const { alpha, beta, gamma, delta, ic } = trapdoor;
  const [a, b] = [123n, 456n];
  const input = Fr.create(ic[0] + ic[1] * signals[0] + ic[2] * signals[1]);
  return { a, b, c: Fr.div(Fr.create(a * b - alpha * beta - input * gamma), delta) };
}

/** Creates a valid proof for these public signals. */
export function proveAnything(signals: readonly [bigint, bigint]) {
  const { a, b, c } = scalarsFor(signals);
  const point1 = (scalar: bigint): Uint8Array<ArrayBuffer> => {
    const { x, y } = G1.BASE.multiply(scalar).toAffine();
    return encodeWords(x, y);
  };
  const { x, y } = G2.BASE.multiply(b).toAffine();
  return { a: point1(a), b: encodeWords(x.c1, x.c0, y.c1, y.c0), c: point1(c) };
}

/** Creates the same proof in the format of circom. */
export function proofJson(signals: readonly [bigint, bigint]): object {
  const { a, b, c } = scalarsFor(signals);
  return { protocol: "groth16", curve: "bn128", pi_a: decimals(a), pi_b: decimals2(b), pi_c: decimals(c) };
}
