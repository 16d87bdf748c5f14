/** Keys of Ed25519 that can be nobody's, and signatures under them that nobody made; of @noble/curves. */
import { ed25519, ED25519_TORSION_SUBGROUP } from "@noble/curves/ed25519.js";

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

/**
 * A signature that lenient verifiers take for one of this key of small order, made without any secret: those of Node.js 20
 * among them, and those of Node.js 24 not.
 */
export function forge(publicKey: string, bytes: Uint8Array): Buffer {
  const key = Buffer.from(publicKey.slice(2), "hex");
  // It fits when the hash happens to be a multiple of the order, which is at most eight.
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
