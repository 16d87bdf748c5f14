/** Stores the complete nodes of the commitment tree in tree pages, each of four levels. A checksum covers each page. */
import type { Queries } from "../db/queries/database.js";
import { pageLevels, type PagePath } from "../tree/page.js";
import { createPageStore } from "../tree/page-store.js";
import type { NodeRun } from "./fold.js";
import { hashPair, toHex, treeDepth } from "./poseidon.js";

const hashBytes = 32;
/** Name of the commitment tree among the trees in the database. */
const treeName = "commitments";
/** Number of nodes on the lowest level of a page. */
const pageWidth = 2 ** pageLevels;
/** Size of a page: its levels have 2, 4, 8 and 16 nodes. An absent node is zero, which is the hash of no node. */
const pageBytes = (2 * pageWidth - 2) * hashBytes;
/** Length of the path of a page that holds leaves. */
const leafPath = treeDepth / pageLevels - 1;
const absent = "0".repeat(2 * hashBytes);

/** Pages by path: the first hex digits of the leaf indexes below the page. */
export type NodePages = ReadonlyMap<PagePath, Uint8Array>;

/** Returns the page that holds a node below the root, and the node's offset in it. The upper levels come first. */
function placeOf(level: number, position: number): { readonly path: PagePath; readonly at: number } {
  const width = pageWidth >> (level % pageLevels);
  const digits = Math.floor((treeDepth - 1 - level) / pageLevels);
  const index = Math.floor(position / width).toString(16);
  return { path: index.padStart(digits, "0").slice(0, digits), at: (width + (position % width) - 2) * hashBytes };
}

/** Returns the paths of the pages that hold these nodes. */
export function pagesOf(nodes: Iterable<readonly [level: number, position: number]>): PagePath[] {
  // The page below the root also serves to compute the root.
  return [...new Set(Array.from(nodes, ([level, position]) => placeOf(Math.min(level, treeDepth - 1), position).path))];
}

/** Returns the paths of the pages on the path of a leaf, one for each four levels. */
export function pagesAbove(leafIndex: number): PagePath[] {
  const index = leafIndex.toString(16).padStart(leafPath + 1, "0");
  return Array.from({ length: leafPath + 1 }, (_, digits) => index.slice(0, digits));
}

/** Returns a complete node; undefined if it is not stored. The root of a full tree is computed. */
export function nodeIn(pages: NodePages, level: number, position: number): string | undefined {
  if (level === treeDepth) {
    return hashOfChildren(pages, level, position);
  }
  const { path, at } = placeOf(level, position);
  const page = pages.get(path);
  const hex = page && Buffer.from(page.buffer, page.byteOffset + at, hashBytes).toString("hex");
  return hex === absent || hex === undefined ? undefined : `0x${hex}`;
}

/** Returns true for a page above the leaves with all of its nodes, of which the last is stored last. */
export function isUpperAndComplete(path: PagePath, page: Uint8Array): boolean {
  return path.length < leafPath && page.subarray(-hashBytes).some((byte) => byte !== 0);
}

export function childrenOf(level: number, position: number): (readonly [level: number, position: number])[] {
  return [0, 1].map((side) => [level - 1, 2 * position + side] as const);
}

/** Computes a node from its children; undefined if one is missing. */
export function hashOfChildren(pages: NodePages, level: number, position: number): string | undefined {
  const [left, right] = childrenOf(level, position).map((child) => nodeIn(pages, ...child));
  return left === undefined || right === undefined ? undefined : toHex(hashPair(BigInt(left), BigInt(right)));
}

export function createNodeStore(db: Queries) {
  const store = createPageStore(db, treeName);
  return {
    load: store.load,
    async insert(runs: readonly NodeRun[]): Promise<void> {
      const nodes = runs.flatMap(({ level, position, hashes }) =>
        level === treeDepth ? [] : hashes.map((hash, i) => ({ hash, place: placeOf(level, position + i) })),
      );
      const paths = new Set(nodes.map(({ place }) => place.path));
      const stored = await store.load([...paths]);
      const pages = new Map(
        Array.from(paths, (path) => [path, Buffer.from(stored.get(path) ?? new Uint8Array(pageBytes))]),
      );
      nodes.forEach(({ hash, place }) => pages.get(place.path)!.write(toHex(hash).slice(2), place.at, "hex"));
      await store.save(pages);
    },
  };
}
