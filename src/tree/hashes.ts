/**
 * Hashes of a compact sparse Merkle tree over 256-bit keys. A subtree without leaves has {@link emptyHash}. A subtree
 * with one leaf has the hash of that leaf, at any depth. Every other subtree has the hash of an inner node. ICS-23
 * calls this layout its sparse Merkle spec. This module does not depend on Node.js, so that clients can supply their
 * own SHA-256.
 */

/** Hashes bytes with SHA-256 without retaining the array, which callers reuse. */
export type Sha256 = (bytes: Uint8Array) => Uint8Array;

/** Size of a key and of a hash, in bytes. */
export const hashBytes = 32;
/** Depth limit of a leaf: the number of bits of a key. */
export const maxDepth = 8 * hashBytes;
export const emptyHash: Uint8Array = new Uint8Array(hashBytes);

export type TreeHashes = ReturnType<typeof createTreeHashes>;

const utf8 = new TextEncoder();

/**
 * Creates the tree hashes from a SHA-256 implementation.
 *
 * @param ofText a faster way to hash texts, if there is one; by default texts are encoded to bytes first.
 */
export function createTreeHashes(
  sha256: Sha256,
  ofText: (text: string) => Uint8Array = (text) => sha256(utf8.encode(text)),
) {
  // A tree has about two nodes for each leaf, so every node is encoded into this one buffer before it is hashed.
  const node = new Uint8Array(1 + 2 * hashBytes);
  const hashNode = (prefix: number, a: Uint8Array, b: Uint8Array): Uint8Array => {
    if (a.length !== hashBytes || b.length !== hashBytes) {
      throw new RangeError("A hash in a node of a tree has the wrong length.");
    }
    node[0] = prefix;
    node.set(a, 1);
    node.set(b, 1 + hashBytes);
    return sha256(node);
  };
  return {
    sha256,
    ofText,
    leaf: (key: Uint8Array, valueHash: Uint8Array): Uint8Array => hashNode(0, key, valueHash),
    inner: (left: Uint8Array, right: Uint8Array): Uint8Array => hashNode(1, left, right),
  };
}

/** Returns the bit of a key at a depth: 0 selects the left subtree. Depth 0 is the highest bit of the first byte. */
export function bitOf(key: Uint8Array, depth: number): 0 | 1 {
  return ((key[depth >> 3]! >> (7 - (depth & 7))) & 1) as 0 | 1;
}

/** Returns the length of the longest common prefix of two keys, in bits. */
export function commonBits(a: Uint8Array, b: Uint8Array): number {
  const byte = a.findIndex((value, i) => value !== b[i]);
  return byte === -1 ? maxDepth : byte * 8 + Math.clz32(a[byte]! ^ b[byte]!) - 24;
}

export function isSame(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) {
    return false;
  }
  for (let i = 0; i < a.length; i++) {
    if (a[i] !== b[i]) {
      return false;
    }
  }
  return true;
}
