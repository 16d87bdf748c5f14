/** Keys of Ed25519 that can be nobody's, and signatures under them that nobody made; of @noble/curves and node:crypto. */
import { ed25519, ED25519_TORSION_SUBGROUP } from "@noble/curves/ed25519.js";
import { createPublicKey, type KeyObject, verify } from "node:crypto";

const prime = 2n ** 255n - 19n;

/** Text of a y-coordinate, as it may not always be written: with any sign, and not smaller than the field's prime. */
export function encodeKey(y: bigint, isNegative: boolean): string {
  const bytes = Buffer.from((y + (isNegative ? 2n ** 255n : 0n)).toString(16).padStart(64, "0"), "hex").reverse();
  return `0x${bytes.toString("hex")}`;
}

/** Every text that decoders read as one of the eight points of small order: 0x and 64 lower-case hex digits. */
export const smallOrderKeys: readonly string[] = [
  ...new Set([
    ...ED25519_TORSION_SUBGROUP.map((hex) => `0x${hex}`),
    ...[0n, 1n, prime - 1n, prime, prime + 1n].flatMap((y) => [encodeKey(y, false), encodeKey(y, true)]),
  ]),
];

/** Texts of numbers that are not smaller than the prime, all that there are. */
export const nonCanonicalKeys: readonly string[] = Array.from({ length: 19 }, (_, i) => prime + BigInt(i)).flatMap(
  (y) => [encodeKey(y, false), encodeKey(y, true)],
);

/** A signature that OpenSSL takes for one of this key of small order, made without any secret. */
export function forge(publicKey: string, bytes: Uint8Array): Buffer {
  const key = keyObject(publicKey);
  // It fits when the hash happens to be a multiple of the order, which is at most eight.
  for (let scalar = 1n; scalar < 1_000n; scalar++) {
    const signature = Buffer.concat([
      ed25519.Point.BASE.multiply(scalar).toBytes(),
      Buffer.from(scalar.toString(16).padStart(64, "0"), "hex").reverse(),
    ]);
    if (verify(null, bytes, key, signature)) {
      return signature;
    }
  }
  throw new Error(`No signature of ${publicKey} was found.`);
}

function keyObject(publicKey: string): KeyObject {
  const der = Buffer.from(`302a300506032b6570032100${publicKey.slice(2)}`, "hex");
  return createPublicKey({ key: der, format: "der", type: "spki" });
}
