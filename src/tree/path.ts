/**
 * Paths from the root of a tree to the position of a key. A proof is such a path; checking it requires only the root.
 */
import { bitOf, commonBits, emptyHash, hashBytes, isSame, maxDepth, type TreeHashes } from "./hashes.js";

export interface Leaf {
  readonly key: Uint8Array;
  readonly valueHash: Uint8Array;
}

/** Merkle path of a key. Leaves out the key's own leaf. */
export interface Path {
  /** Sibling hashes along the path, 32 bytes each, starting below the root. */
  readonly siblings: Uint8Array;
  /** Leaf of another key that occupies the position of this key; undefined if there is none. */
  readonly other: Leaf | undefined;
}

/**
 * Computes the root that a path leads to; undefined if the path is malformed.
 *
 * @param valueHash hash of the key's value; undefined to show that the tree does not contain the key.
 */
export function rootOfPath(
  hashes: TreeHashes,
  key: Uint8Array,
  valueHash: Uint8Array | undefined,
  { siblings, other }: Path,
): Uint8Array | undefined {
  const depth = siblings.length / hashBytes;
  const parts = [key, ...(valueHash === undefined ? [] : [valueHash]), ...(other ? [other.key, other.valueHash] : [])];
  if (!Number.isInteger(depth) || depth > maxDepth || parts.some(({ length }) => length !== hashBytes)) {
    return undefined;
  }
  // Another leaf can occupy this position only if its subtree has no second leaf. It therefore excludes a value of the
  // key itself, and must share the key's first `depth` bits.
  if (other !== undefined && (valueHash !== undefined || !sharesPosition(other.key, key, depth))) {
    return undefined;
  }
  const end = valueHash === undefined ? other : { key, valueHash };
  let node = end === undefined ? emptyHash : hashes.leaf(end.key, end.valueHash);
  for (let at = depth - 1; at >= 0; at--) {
    const sibling = siblings.subarray(at * hashBytes, (at + 1) * hashBytes);
    node = bitOf(key, at) === 0 ? hashes.inner(node, sibling) : hashes.inner(sibling, node);
  }
  return node;
}

/** Returns true if another leaf at this depth occupies the position of a key: their first `depth` bits are equal. */
function sharesPosition(other: Uint8Array, key: Uint8Array, depth: number): boolean {
  const common = commonBits(other, key);
  return common >= depth && common < maxDepth;
}

export function leadsTo(root: Uint8Array, ...path: Parameters<typeof rootOfPath>): boolean {
  const found = rootOfPath(...path);
  return found !== undefined && isSame(found, root);
}
