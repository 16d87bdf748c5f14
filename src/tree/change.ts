/**
 * Applies changes to a tree. All changes of a block are applied at once, so that each page is read and written once.
 */
import { treeNodes } from "./node-hashes.js";
import { isInner, isLeaf, type TreeNode } from "./nodes.js";
import {
  type Branch,
  decodeTreePage,
  encodeTreePage,
  maxBucketLeaves,
  nodeOf,
  type TreePage,
  type PagePath,
  pathBelow,
  slotOf,
} from "./page.js";
import type { Leaf } from "./path.js";

/** Loads the stored pages at these paths. The result leaves out paths without a page. */
export type LoadPages = (paths: readonly PagePath[]) => Promise<ReadonlyMap<PagePath, Uint8Array>>;

export interface LeafChange {
  readonly key: Uint8Array;
  /** Hash of the new value; undefined removes the leaf. Removing an absent leaf changes nothing. */
  readonly valueHash: Uint8Array | undefined;
}

/** Root of a tree after its changes, and the pages that differ. */
export interface ChangedTree {
  readonly root: Uint8Array;
  /** New contents of the changed pages; undefined where a page is removed. */
  readonly pages: ReadonlyMap<PagePath, Uint8Array | undefined>;
}

/**
 * Computes a tree after changes, without storing anything.
 *
 * @param changes at most one for each key.
 */
export async function changeTree(load: LoadPages, changes: readonly LeafChange[]): Promise<ChangedTree> {
  const sorted = sortLeaves(changes);
  const loadPages = changes.length > fewChanges ? load : await prefetchPages(load, changes);
  const state: ChangeState = { pages: await loadChanged(loadPages, sorted), changed: new Map() };
  return { root: treeNodes.hashOfNode(changePage("", sorted, state)), pages: state.changed };
}

/**
 * Builds the tree of these leaves alone. Yields after each of the up to 16 subtrees below the root.
 *
 * @param leaves in any order.
 */
export function* buildTree(leaves: readonly Leaf[]): Generator<void, ChangedTree> {
  const state: ChangeState = { pages: new Map(), changed: new Map() };
  if (leaves.length <= maxBucketLeaves) {
    return { root: treeNodes.hashOfNode(changePage("", sortLeaves(leaves), state)), pages: state.changed };
  }
  const slots = emptyBranch.slots.slice();
  for (const [slot, group] of bySlot(leaves, "")) {
    const below = sortLeaves(group);
    slots[slot] = below.length < 2 ? below[0] : changePage(pathBelow("", slot), below, state);
    yield;
  }
  const page: Branch = { kind: "branch", slots };
  state.changed.set("", encodeTreePage(page));
  return { root: treeNodes.hashOfNode(nodeOf(page, "")), pages: state.changed };
}

/** Computes the root of the tree of these leaves without building pages. The keys must differ. */
export function rootOfLeaves(leaves: readonly Leaf[]): Uint8Array {
  return treeNodes.hashOfNode(treeNodes.nodeOfLeaves(sortLeaves(leaves), 0));
}

function sortLeaves<T extends LeafChange>(leaves: readonly T[]): T[] {
  return leaves.toSorted((a, b) => compareKeys(a.key, b.key));
}

/**
 * Compares two keys. Nearly all keys differ in their first three bytes, so the slower full comparison is rarely called.
 */
function compareKeys(a: Uint8Array, b: Uint8Array): number {
  return a[0]! - b[0]! || a[1]! - b[1]! || a[2]! - b[2]! || Buffer.compare(a, b);
}

/** Number of pages above a leaf in a tree of a million leaves. */
const usualDepth = 6;
/** Maximum number of changes for which prefetching the usual pages costs less than loading the tree level by level. */
const fewChanges = 40;

function usualPaths(key: Uint8Array): PagePath[] {
  const digits = Buffer.from(key).toString("hex");
  return Array.from({ length: usualDepth }, (_, i) => digits.slice(0, i));
}

/**
 * Prefetches the pages that usually lie above the keys. Returns a loader that serves these pages and loads deeper pages
 * on request.
 */
export async function prefetchPages(load: LoadPages, keyed: readonly Pick<LeafChange, "key">[]): Promise<LoadPages> {
  const paths = new Set(keyed.flatMap(({ key }) => usualPaths(key)));
  const pages = await load([...paths]);
  return async (wanted) => {
    const further = wanted.filter((path) => !paths.has(path));
    return further.length === 0 ? pages : new Map([...pages, ...(await load(further))]);
  };
}

/** Pages that exist before the changes, and the new contents of the changed pages. */
interface ChangeState {
  readonly pages: ReadonlyMap<PagePath, TreePage>;
  readonly changed: Map<PagePath, Uint8Array | undefined>;
}

/** Loads all pages above the changed leaves, with one request for each level. */
async function loadChanged(load: LoadPages, sorted: readonly LeafChange[]): Promise<Map<PagePath, TreePage>> {
  const pages = new Map<PagePath, TreePage>();
  let level: readonly (readonly [PagePath, readonly LeafChange[]])[] = [["", sorted]];
  while (level.length > 0) {
    const stored = await load(level.map(([path]) => path));
    const next: (readonly [PagePath, readonly LeafChange[]])[] = [];
    for (const [path, changes] of level) {
      const bytes = stored.get(path);
      if (bytes === undefined) {
        requireNoPage(path);
        continue;
      }
      const page = decodeTreePage(bytes);
      pages.set(path, page);
      if (page.kind === "branch") {
        const below = [...bySlot(changes, path)].filter(([slot]) => isInner(page.slots[slot]));
        next.push(...below.map(([slot, group]) => [pathBelow(path, slot), group] as const));
      }
    }
    level = next;
  }
  return pages;
}

/**
 * Accepts a missing root page, since a tree without leaves has none.
 *
 * @throws RangeError if any other page is missing.
 */
export function requireNoPage(path: PagePath): void {
  if (path !== "") {
    throw new RangeError(`Page ${path} of a tree is missing.`);
  }
}

/**
 * Applies changes to the page at this path and records its new contents. Returns the node that the page above stores.
 */
function changePage(path: PagePath, changes: readonly LeafChange[], state: ChangeState): TreeNode {
  const before = state.pages.get(path);
  const page =
    before?.kind === "branch"
      ? changeSlots(before, path, changes, state)
      : pageOf(mergeLeaves(before?.leaves ?? [], changes), path, state);
  const node = nodeOf(page, path);
  // A page above stores a single leaf in its own slot. The root page stays as long as the tree has a leaf.
  const isStored = isInner(node) || (path === "" && node !== undefined);
  if (isStored || before !== undefined) {
    state.changed.set(path, isStored ? encodeTreePage(page) : undefined);
  }
  return node;
}

/** Builds a new page from leaves, with slots if the leaves exceed the limit for one page. */
function pageOf(leaves: readonly Leaf[], path: PagePath, state: ChangeState): TreePage {
  return leaves.length <= maxBucketLeaves ? { kind: "bucket", leaves } : changeSlots(emptyBranch, path, leaves, state);
}

const emptyBranch: Branch = { kind: "branch", slots: new Array<TreeNode>(16).fill(undefined) };

/** Applies changes to the slots of a branch page. Two or more leaves in a slot become a page below. */
function changeSlots({ slots }: Branch, path: PagePath, changes: readonly LeafChange[], state: ChangeState): Branch {
  const changed = slots.slice();
  for (const [slot, group] of bySlot(changes, path)) {
    const before = changed[slot];
    if (isInner(before)) {
      changed[slot] = changePage(pathBelow(path, slot), group, state);
      continue;
    }
    const leaves = mergeLeaves(isLeaf(before) ? [before] : [], group);
    changed[slot] = leaves.length < 2 ? leaves[0] : changePage(pathBelow(path, slot), leaves, state);
  }
  return { kind: "branch", slots: changed };
}

/** Merges changes into leaves. Both lists must be sorted by key. */
function mergeLeaves(before: readonly Leaf[], changes: readonly LeafChange[]): Leaf[] {
  const leaves: Leaf[] = [];
  let next = 0;
  for (const leaf of before) {
    let order = -1;
    while (next < changes.length && (order = Buffer.compare(changes[next]!.key, leaf.key)) < 0) {
      addLeaf(leaves, changes[next++]!);
    }
    if (next < changes.length && order === 0) {
      addLeaf(leaves, changes[next++]!);
    } else {
      leaves.push(leaf);
    }
  }
  changes.slice(next).forEach((change) => addLeaf(leaves, change));
  return leaves;
}

function addLeaf(leaves: Leaf[], { key, valueHash }: LeafChange): void {
  if (valueHash !== undefined) {
    leaves.push({ key, valueHash });
  }
}

/** Groups changes by the slot that their keys belong to, in the page at this path. */
function bySlot<T extends LeafChange>(changes: readonly T[], path: PagePath): Map<number, T[]> {
  const groups = new Map<number, T[]>();
  for (const change of changes) {
    const slot = slotOf(change.key, path);
    const group = groups.get(slot);
    if (group === undefined) {
      groups.set(slot, [change]);
    } else {
      group.push(change);
    }
  }
  return groups;
}
