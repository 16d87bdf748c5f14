/** Which public keys can be somebody's. */

/** The prime of the curve's field. */
const prime = 2n ** 255n - 19n;
/**
 * The y-coordinates of the eight points whose order divides 8: of order 4, 1, 2, and 8 twice. A signature under one of
 * them is easily made without any secret, and fits many messages.
 */
const smallOrderYs: ReadonlySet<bigint> = new Set([
  0n,
  1n,
  prime - 1n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
  prime - 0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
]);

/**
 * Whether a public key can be somebody's: it is written in the one way that is canonical, and is no point of small order.
 *
 * @param publicKey 64 hex digits, 0x optional.
 */
export function isStrongKey(publicKey: string): boolean {
  // 32 bytes, the lowest first; the highest bit is the sign of x, and whatever it says, the order is the same.
  const bytes = rawKey(publicKey).reverse();
  if (bytes.length !== 32) {
    return false;
  }
  bytes[0]! &= 0x7f;
  const y = BigInt(`0x${bytes.toString("hex")}`);
  return y < prime && !smallOrderYs.has(y);
}

/** The bytes of a public key. */
export function rawKey(publicKey: string): Buffer {
  return Buffer.from(publicKey.replace(/^0x/, ""), "hex");
}
