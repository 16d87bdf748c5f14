/** Validation of Ed25519 public keys. */

const prime = 2n ** 255n - 19n;
/**
 * The y-coordinates of the eight points whose order divides 8: of order 4, 1, 2, and 8 twice. A signature under such a
 * point needs no secret and is valid for many messages.
 */
const smallOrderYs: ReadonlySet<bigint> = new Set([
  0n,
  1n,
  prime - 1n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
  prime - 0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
]);

/**
 * Returns true if the public key is safe: canonically encoded, and not a point of small order.
 *
 * @param publicKey 64 hex digits, 0x optional.
 */
export function isStrongKey(publicKey: string): boolean {
  // The key is little-endian. Its highest bit is the sign of x, which does not affect the order of the point.
  const bytes = rawKey(publicKey).reverse();
  if (bytes.length !== 32) {
    return false;
  }
  bytes[0]! &= 0x7f;
  const y = BigInt(`0x${bytes.toString("hex")}`);
  return y < prime && !smallOrderYs.has(y);
}

/** Decodes a public key in hex, 0x optional, to its bytes. */
export function rawKey(publicKey: string): Buffer {
  return Buffer.from(publicKey.replace(/^0x/, ""), "hex");
}
