/** The way from a root to where a key ends: what a proof is made of, and how it is checked with nothing but the root. */
import { bitOf, commonBits, emptyHash, hashBytes, isSame, maxDepth, type TreeHashes } from "./hashes.js";

/** A leaf. */
export interface Leaf {
  readonly key: Uint8Array;
  readonly valueHash: Uint8Array;
}

/** The way, without what is at its end where that is the key's own leaf. */
export interface Path {
  /** Hashes of what lies beside the way, 32 bytes each, one after the other from the root on. */
  readonly siblings: Uint8Array;
  /** The leaf of another key, which stands where that of this one would. */
  readonly other: Leaf | undefined;
}

/**
 * The root that a way leads to; undefined where it is none.
 *
 * @param valueHash of the key's value; undefined to show that the key has none.
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
  // Another leaf stands in the key's place only where no two leaves are, so never beside a value of the key itself.
  if (other !== undefined && (valueHash !== undefined || !isInPlaceOf(other.key, key, depth))) {
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

function isInPlaceOf(other: Uint8Array, key: Uint8Array, depth: number): boolean {
  const common = commonBits(other, key);
  return common >= depth && common < maxDepth;
}

/** Whether a way leads to this root. */
export function leadsTo(root: Uint8Array, ...way: Parameters<typeof rootOfPath>): boolean {
  const found = rootOfPath(...way);
  return found !== undefined && isSame(found, root);
}
