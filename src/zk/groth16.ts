/** Verifies Groth16 proofs over BN254, and parses keys and proofs. */
import { bn254 } from "@noble/curves/bn254.js";
import { z } from "zod";
import type { Groth16Proof } from "../../gen/gatehouse/zk/v1/operation_pb.js";
import { fieldOrder } from "./poseidon.js";

/** Key that proofs are verified against: points, and one more point in `ic` than there are public signals. */
export type VerificationKey = ReturnType<typeof parseVerificationKey>;

const { G1, G2, fields, pairingBatch } = bn254;

/** Sizes of a proof's encoded points, in bytes. */
export const proofBytes = [64, 128, 64] as const;

/**
 * Returns true if a proof is valid for these public signals. Takes about 50 ms of CPU time.
 *
 * @param proof points encoded as in EIP-196 and EIP-197. Malformed bytes, points off the curve and points outside the
 * subgroup make the proof invalid.
 */
export function verifyGroth16(task: {
  readonly key: VerificationKey;
  readonly proof: Pick<Groth16Proof, "a" | "b" | "c">;
  readonly signals: readonly bigint[];
}): boolean {
  const { key, proof, signals } = task;
  if (signals.length + 1 !== key.ic.length || signals.some((signal) => signal < 0n || signal >= fieldOrder)) {
    return false;
  }
  try {
    const a = readG1(proof.a);
    const b = readG2(proof.b);
    const c = readG1(proof.c);
    const [constant, ...others] = key.ic.map((point) => G1.Point.fromAffine(point));
    const inputs = others.reduce((sum, point, i) => sum.add(point.multiplyUnsafe(signals[i]!)), constant!);
    const product = pairingBatch(
      [
        { g1: a.negate(), g2: b },
        { g1: G1.Point.fromAffine(key.alpha), g2: G2.Point.fromAffine(key.beta) },
        { g1: inputs, g2: G2.Point.fromAffine(key.gamma) },
        { g1: c, g2: G2.Point.fromAffine(key.delta) },
      ].filter(({ g1, g2 }) => !g1.is0() && !g2.is0()),
    );
    return fields.Fp12.eql(product, fields.Fp12.ONE);
  } catch {
    return false;
  }
}

function readWords(bytes: Uint8Array, count: number): bigint[] {
  if (bytes.length !== 32 * count) {
    throw new Error("wrong length");
  }
  return Array.from({ length: count }, (_, i) => {
    const word = BigInt(`0x${Buffer.from(bytes.subarray(32 * i, 32 * i + 32)).toString("hex")}`);
    if (word >= fields.Fp.ORDER) {
      throw new Error("not a coordinate");
    }
    return word;
  });
}

function readG1(bytes: Uint8Array) {
  const [x, y] = readWords(bytes, 2) as [bigint, bigint];
  return validPoint(G1.Point, { x, y });
}

function readG2(bytes: Uint8Array) {
  const [x1, x0, y1, y0] = readWords(bytes, 4) as [bigint, bigint, bigint, bigint];
  return validPoint(G2.Point, { x: { c0: x0, c1: x1 }, y: { c0: y0, c1: y1 } });
}

/**
 * Returns a point of the group.
 *
 * @throws Error if the point is not in the group.
 */
function validPoint<A, P extends { assertValidity(): void }>(group: { fromAffine(affine: A): P }, affine: A): P {
  const point = group.fromAffine(affine);
  point.assertValidity();
  return point;
}

const decimal = z
  .string()
  .regex(/^\d{1,78}$/)
  .transform(BigInt)
  .refine((value) => value < fields.Fp.ORDER, "is not an element of the field");
const one = z.literal("1");
const jsonG1 = z.tuple([decimal, decimal, one]).transform(([x, y]) => ({ x, y }));
const pair = z.tuple([decimal, decimal]).transform(([c0, c1]) => ({ c0, c1 }));
const jsonG2 = z.tuple([pair, pair, z.tuple([one, z.literal("0")])]).transform(([x, y]) => ({ x, y }));

const jsonKey = z.looseObject({
  protocol: z.literal("groth16"),
  curve: z.enum(["bn128", "bn254"]),
  vk_alpha_1: jsonG1,
  vk_beta_2: jsonG2,
  vk_gamma_2: jsonG2,
  vk_delta_2: jsonG2,
  IC: z.array(jsonG1).length(3),
});

/**
 * Parses a verification key in the JSON format of circom's tools, for two public signals.
 *
 * @throws Error with a message of one sentence.
 */
export function parseVerificationKey(json: unknown) {
  const parsed = parse("verification key", jsonKey, json);
  const { vk_alpha_1: alpha, vk_beta_2: beta, vk_gamma_2: gamma, vk_delta_2: delta, IC: ic } = parsed;
  try {
    [alpha, ...ic].forEach((point) => validPoint(G1.Point, point));
    [beta, gamma, delta].forEach((point) => validPoint(G2.Point, point));
  } catch {
    throw new Error("The verification key is not usable: one of its points is not a point of its group.");
  }
  return { alpha, beta, gamma, delta, ic };
}

const jsonProof = z.looseObject({ pi_a: jsonG1, pi_b: jsonG2, pi_c: jsonG1 });

/**
 * Parses a proof in the JSON format of circom's tools.
 *
 * @throws Error with a message of one sentence.
 */
export function parseProof(json: unknown): Pick<Groth16Proof, "a" | "b" | "c"> {
  const { pi_a: a, pi_b: b, pi_c: c } = parse("proof", jsonProof, json);
  return { a: encodeWords(a.x, a.y), b: encodeWords(b.x.c1, b.x.c0, b.y.c1, b.y.c0), c: encodeWords(c.x, c.y) };
}

function parse<T>(name: string, schema: z.ZodType<T>, json: unknown): T {
  const { data, error } = schema.safeParse(json);
  if (error !== undefined) {
    const [issue] = error.issues;
    throw new Error(`The ${name} is not usable at ${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}.`);
  }
  return data;
}

/** Encodes coordinates as EIP-196 and EIP-197 specify. */
export function encodeWords(...words: readonly bigint[]): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(words.map((word) => word.toString(16).padStart(64, "0")).join(""), "hex"));
}
