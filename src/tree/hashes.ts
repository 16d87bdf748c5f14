/**
 * The hashes of a compact sparse Merkle tree over keys of 256 bits. A half without leaves is {@link emptyHash}; a half with
 * one leaf is that leaf, however deep; every other one is an inner node. This is the layout that ICS-23 names its sparse
 * Merkle spec. Nothing here needs Node.js: who hashes does it with what there is.
 */

/** SHA-256 of bytes, which it does not keep. */
export type Sha256 = (bytes: Uint8Array) => Uint8Array;

/** Bytes of a key and of a hash. */
export const hashBytes = 32;
/** Depth of the deepest leaf there can be. */
export const maxDepth = 8 * hashBytes;
/** Hash of a half without leaves. */
export const emptyHash: Uint8Array = new Uint8Array(hashBytes);

/** SHA-256 of a text in UTF-8. */
export type Sha256OfText = (text: string) => Uint8Array;

/** The hashes, made with one SHA-256. */
export type TreeHashes = ReturnType<typeof createTreeHashes>;

const utf8 = new TextEncoder();

/** @param ofText where there is a way for texts that is shorter than that over their bytes. */
export function createTreeHashes(sha256: Sha256, ofText: Sha256OfText = (text) => sha256(utf8.encode(text))) {
  // A tree has two nodes for each leaf: all of them are written here, before they are hashed.
  const node = new Uint8Array(1 + 2 * hashBytes);
  const hashNode = (prefix: number, a: Uint8Array, b: Uint8Array): Uint8Array => {
    if (a.length !== hashBytes || b.length !== hashBytes) {
      throw new RangeError("A part of a node of a tree has not the length of a hash.");
    }
    node[0] = prefix;
    node.set(a, 1);
    node.set(b, 1 + hashBytes);
    return sha256(node);
  };
  return {
    sha256,
    ofText,
    /** A leaf. */
    leaf: (key: Uint8Array, valueHash: Uint8Array): Uint8Array => hashNode(0, key, valueHash),
    /** An inner node. */
    inner: (left: Uint8Array, right: Uint8Array): Uint8Array => hashNode(1, left, right),
  };
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
