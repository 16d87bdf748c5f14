/** Makes proofs that a leaf is in a tree, or that none is. */
import { isPage, loadAhead, type LoadPages, needNoPage } from "./change.js";
import { bitOf, isSame } from "./hashes.js";
import { treeNodes } from "./node-hashes.js";
import { halvesOf, isLeaf, type TreeNode } from "./nodes.js";
import { decodeTreePage, levelsOf, type TreePage, pageLevels, type PagePath, pathBelow, slotOf } from "./page.js";
import type { Leaf, Path } from "./path.js";

/** A proof, and what it shows: the hash of the key's value, undefined where it has none. */
export interface Proof extends Path {
  readonly valueHash: Uint8Array | undefined;
}

/** Makes the proofs of keys, of pages that are asked for at once. */
export async function provePaths(load: LoadPages, keys: readonly Uint8Array[]): Promise<Proof[]> {
  const loadSoon = await loadAhead(
    load,
    keys.map((key) => ({ key })),
  );
  return await Promise.all(keys.map((key) => proveKey(loadSoon, key)));
}

/** Makes the proof of a key. */
export async function provePath(load: LoadPages, key: Uint8Array): Promise<Proof> {
  const [proof] = await provePaths(load, [key]);
  return proof!;
}

async function proveKey(load: LoadPages, key: Uint8Array): Promise<Proof> {
  const siblings: Uint8Array[] = [];
  for (let path: PagePath = ""; ; path = pathBelow(path, slotOf(key, path))) {
    const bytes = (await load([path])).get(path);
    if (bytes === undefined) {
      needNoPage(path);
      return proofOf(key, siblings, undefined);
    }
    const end = walkPage(decodeTreePage(bytes), path, key, siblings);
    if (!isPage(end)) {
      return proofOf(key, siblings, end as Leaf | undefined);
    }
  }
}

/** The proof of a key among leaves that are at hand, in the order of their keys. */
export function proveAmong(leaves: readonly Leaf[], key: Uint8Array): Proof {
  const siblings: Uint8Array[] = [];
  const end = walkLeaves(leaves, 0, key, siblings);
  return proofOf(key, siblings, end);
}

function proofOf(key: Uint8Array, siblings: readonly Uint8Array[], end: Leaf | undefined): Proof {
  const isThere = end !== undefined && isSame(end.key, key);
  return {
    siblings: Buffer.concat(siblings),
    other: isThere ? undefined : end,
    valueHash: isThere ? end.valueHash : undefined,
  };
}

/** Goes down from the node of a page towards a key, until there is no node above two leaves any more. */
function walkPage(page: TreePage, path: PagePath, key: Uint8Array, siblings: Uint8Array[]): TreeNode {
  if (page.kind === "bucket") {
    return walkLeaves(page.leaves, path.length * pageLevels, key, siblings);
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

function walkLeaves(leaves: readonly Leaf[], depth: number, key: Uint8Array, siblings: Uint8Array[]): Leaf | undefined {
  let left = leaves;
  for (let at = depth; left.length > 1; at++) {
    const halves = halvesOf(left, at);
    const bit = bitOf(key, at);
    siblings.push(treeNodes.hashOfNode(treeNodes.nodeOfLeaves(halves[1 - bit]!, at + 1)));
    left = halves[bit]!;
  }
  return left[0];
}
