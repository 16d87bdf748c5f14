/** Creates proofs that a tree contains a key, or that it does not. */
import { prefetchPages, type LoadPages, requireNoPage } from "./change.js";
import { bitOf, isSame } from "./hashes.js";
import { treeNodes } from "./node-hashes.js";
import { halvesOf, isInner, isLeaf, type TreeNode } from "./nodes.js";
import { decodeTreePage, levelsOf, type TreePage, pageLevels, type PagePath, pathBelow, slotOf } from "./page.js";
import type { Leaf, Path } from "./path.js";

/** Proof, and the value hash that it proves; undefined if the tree does not contain the key. */
export interface Proof extends Path {
  readonly valueHash: Uint8Array | undefined;
}

/** Creates the proofs of several keys. The pages that the proofs usually need are loaded with one request. */
export async function provePaths(load: LoadPages, keys: readonly Uint8Array[]): Promise<Proof[]> {
  const loadPages = await prefetchPages(
    load,
    keys.map((key) => ({ key })),
  );
  return await Promise.all(keys.map((key) => proveKey(loadPages, key)));
}

export async function provePath(load: LoadPages, key: Uint8Array): Promise<Proof> {
  const [proof] = await provePaths(load, [key]);
  return proof!;
}

async function proveKey(load: LoadPages, key: Uint8Array): Promise<Proof> {
  const siblings: Uint8Array[] = [];
  for (let path: PagePath = ""; ; path = pathBelow(path, slotOf(key, path))) {
    const bytes = (await load([path])).get(path);
    if (bytes === undefined) {
      requireNoPage(path);
      return proofOf(key, siblings, undefined);
    }
    const end = descendPage(decodeTreePage(bytes), path, key, siblings);
    if (!isInner(end)) {
      return proofOf(key, siblings, end);
    }
  }
}

/** Creates the proof of a key among these leaves, which must be sorted by key. */
export function proveAmong(leaves: readonly Leaf[], key: Uint8Array): Proof {
  const siblings: Uint8Array[] = [];
  const end = descendLeaves(leaves, 0, key, siblings);
  return proofOf(key, siblings, end);
}

function proofOf(key: Uint8Array, siblings: readonly Uint8Array[], end: Leaf | undefined): Proof {
  const isFound = end !== undefined && isSame(end.key, key);
  return {
    siblings: Buffer.concat(siblings),
    other: isFound ? undefined : end,
    valueHash: isFound ? end.valueHash : undefined,
  };
}

/**
 * Descends from the top node of a page toward a key and collects sibling hashes. Stops at a leaf, at an empty node or
 * at the page below.
 */
function descendPage(page: TreePage, path: PagePath, key: Uint8Array, siblings: Uint8Array[]): TreeNode {
  if (page.kind === "bucket") {
    return descendLeaves(page.leaves, path.length * pageLevels, key, siblings);
  }
  const levels = levelsOf(page);
  const slot = slotOf(key, path);
  for (let level = pageLevels; level > 0; level--) {
    const node = levels[level]![slot >> level];
    if (node === undefined || isLeaf(node)) {
      return node;
    }
    siblings.push(treeNodes.hashOfNode(levels[level - 1]![(slot >> (level - 1)) ^ 1]));
  }
  return levels[0]![slot];
}

/** Descends among sorted leaves toward a key and collects sibling hashes. Returns the last remaining leaf. */
function descendLeaves(
  leaves: readonly Leaf[],
  depth: number,
  key: Uint8Array,
  siblings: Uint8Array[],
): Leaf | undefined {
  let remaining = leaves;
  for (let at = depth; remaining.length > 1; at++) {
    const halves = halvesOf(remaining, at);
    const bit = bitOf(key, at);
    siblings.push(treeNodes.hashOfNode(treeNodes.nodeOfLeaves(halves[1 - bit]!, at + 1)));
    remaining = halves[bit]!;
  }
  return remaining[0];
}
