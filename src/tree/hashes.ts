/**
 * The hashes of a compact sparse Merkle tree over keys of 256 bits. A half without leaves is {@link emptyHash}; a half with
 * one leaf is that leaf, however deep; every other one is an inner node. This is the layout that ICS-23 names its sparse
 * Merkle spec. Nothing here needs Node.js: who hashes does it with what there is.
 */

/** SHA-256 of bytes. */
export type Sha256 = (bytes: Uint8Array) => Uint8Array;

/** Bytes of a key and of a hash. */
export const hashBytes = 32;
/** Depth of the deepest leaf there can be. */
export const maxDepth = 8 * hashBytes;
/** Hash of a half without leaves. */
export const emptyHash: Uint8Array = new Uint8Array(hashBytes);

/** The hashes, made with one SHA-256. */
export type TreeHashes = ReturnType<typeof createTreeHashes>;

export function createTreeHashes(sha256: Sha256) {
  return {
    sha256,
    /** A leaf. */
    leaf: (key: Uint8Array, valueHash: Uint8Array): Uint8Array => sha256(joinTwo(0, key, valueHash)),
    /** An inner node. */
    inner: (left: Uint8Array, right: Uint8Array): Uint8Array => sha256(joinTwo(1, left, right)),
  };
}

function joinTwo(prefix: number, a: Uint8Array, b: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(1 + 2 * hashBytes);
  bytes[0] = prefix;
  bytes.set(a, 1);
  bytes.set(b, 1 + hashBytes);
  return bytes;
}

/** Which way a key goes at a depth, from the highest bit of its first byte on: 0 is left. */
export function bitOf(key: Uint8Array, depth: number): 0 | 1 {
  return ((key[depth >> 3]! >> (7 - (depth & 7))) & 1) as 0 | 1;
}

/** How many bits two keys have in common, from the first on. */
export function commonBits(a: Uint8Array, b: Uint8Array): number {
  const byte = a.findIndex((one, i) => one !== b[i]);
  return byte === -1 ? maxDepth : byte * 8 + Math.clz32(a[byte]! ^ b[byte]!) - 24;
}

/** Whether two runs of bytes are the same. */
export function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((one, i) => one === b[i]);
}
