/**
 * Nodes above leaves. This module does not depend on Node.js, because clients that verify a full document build the
 * tree of its fields.
 */
import { bitOf, emptyHash, isSame, type TreeHashes } from "./hashes.js";
import type { Leaf } from "./path.js";

/**
 * Node of a tree: undefined for no leaves, the leaf itself for one leaf, or the hash of the inner node for two or more
 * leaves.
 */
export type TreeNode = Leaf | { readonly hash: Uint8Array } | undefined;

export function isLeaf(node: TreeNode): node is Leaf {
  return node !== undefined && "key" in node;
}

/** Returns true if a node is an inner node, which has two or more leaves. */
export function isInner(node: TreeNode): node is { readonly hash: Uint8Array } {
  return node !== undefined && !isLeaf(node);
}

/** Splits sorted leaves into those of the left and of the right subtree at a depth. */
export function halvesOf(leaves: readonly Leaf[], depth: number): readonly [readonly Leaf[], readonly Leaf[]] {
  const middle = leaves.findIndex(({ key }) => bitOf(key, depth) === 1);
  return middle === -1 ? [leaves, []] : [leaves.slice(0, middle), leaves.slice(middle)];
}

export function createTreeNodes(hashes: TreeHashes) {
  const hashOfNode = (node: TreeNode): Uint8Array =>
    node === undefined ? emptyHash : isLeaf(node) ? hashes.leaf(node.key, node.valueHash) : node.hash;

  /** Returns the node above two nodes. A leaf without a sibling takes the place of the node above. */
  function joinNodes(left: TreeNode, right: TreeNode): TreeNode {
    if (right === undefined && (left === undefined || isLeaf(left))) {
      return left;
    }
    if (left === undefined && isLeaf(right)) {
      return right;
    }
    return { hash: hashes.inner(hashOfNode(left), hashOfNode(right)) };
  }

  /**
   * Returns the node above leaves.
   *
   * @param leaves sorted by key; all keys share their first `depth` bits.
   */
  function nodeOfLeaves(leaves: readonly Leaf[], depth: number, from = 0, to = leaves.length): TreeNode {
    if (to - from < 2) {
      return from === to ? undefined : leaves[from];
    }
    let middle = from;
    while (middle < to && bitOf(leaves[middle]!.key, depth) === 0) {
      middle++;
    }
    const left = nodeOfLeaves(leaves, depth + 1, from, middle);
    return joinNodes(left, nodeOfLeaves(leaves, depth + 1, middle, to));
  }

  return {
    hashOfNode,
    joinNodes,
    nodeOfLeaves: (leaves: readonly Leaf[], depth: number): TreeNode => nodeOfLeaves(leaves, depth),
    /** Returns the root of the tree of these leaves, in any order; undefined if two leaves have the same key. */
    rootOfLeaves(leaves: readonly Leaf[]): Uint8Array | undefined {
      const sorted = leaves.toSorted((a, b) => compareKeys(a.key, b.key));
      const hasDuplicates = sorted.some(({ key }, i) => i > 0 && isSame(key, sorted[i - 1]!.key));
      return hasDuplicates ? undefined : hashOfNode(nodeOfLeaves(sorted, 0));
    },
  };
}

function compareKeys(a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < a.length; i++) {
    if (a[i] !== b[i]) {
      return a[i]! - b[i]!;
    }
  }
  return 0;
}
