/** Weak Ed25519 public keys, and forged signatures for them, created with @noble/curves. */
import { ed25519, ED25519_TORSION_SUBGROUP } from "@noble/curves/ed25519.js";

const prime = 2n ** 255n - 19n;

/** Encodes a y-coordinate, also in non-canonical form: with any sign, or not below the prime of the field. */
export function encodeKey(y: bigint, isNegative: boolean): string {
  const bytes = Buffer.from((y + (isNegative ? 2n ** 255n : 0n)).toString(16).padStart(64, "0"), "hex").reverse();
  return `0x${bytes.toString("hex")}`;
}

/** Every encoding of the eight points of small order: 0x and 64 lower-case hex digits. */
export const smallOrderKeys: readonly string[] = [
  ...new Set([
    ...ED25519_TORSION_SUBGROUP.map((hex) => `0x${hex}`),
    ...[0n, 1n, prime - 1n, prime, prime + 1n].flatMap((y) => [encodeKey(y, false), encodeKey(y, true)]),
  ]),
];

/** All encodings of numbers that are not below the prime. */
export const nonCanonicalKeys: readonly string[] = Array.from({ length: 19 }, (_, i) => prime + BigInt(i)).flatMap(
  (y) => [encodeKey(y, false), encodeKey(y, true)],
);

/**
 * Forges a signature for a key of small order, without a secret. Lenient verifiers accept it, such as those of
 * Node.js 20, but not those of Node.js 24.
 */
export function forge(publicKey: string, bytes: Uint8Array): Buffer {
  const key = Buffer.from(publicKey.slice(2), "hex");
  // The signature is valid if the hash is a multiple of the order, which is at most eight.
  for (let scalar = 1n; scalar < 1_000n; scalar++) {
    const signature = Buffer.concat([
      ed25519.Point.BASE.multiply(scalar).toBytes(),
      Buffer.from(scalar.toString(16).padStart(64, "0"), "hex").reverse(),
    ]);
    if (ed25519.verify(signature, bytes, key, { zip215: true })) {
      return signature;
    }
  }
  throw new Error(`No signature of ${publicKey} was found.`);
}
