/**
 * Pages: what a tree is kept in, each in one row of the database. A page stands above all leaves whose keys begin with its
 * path. As long as these are few they are in the page itself; above that it has sixteen slots, one for each way in which a
 * key may go on, and what lies in a slot is nothing, one leaf, or the page below it. Which of the two a page is changes
 * nothing in its hash.
 */
import { hashBytes } from "./hashes.js";
import { treeNodes } from "./node-hashes.js";
import { isLeaf, type TreeNode } from "./nodes.js";
import type { Leaf } from "./path.js";

/** A page with leaves, in the order of their keys. */
export interface Bucket {
  readonly kind: "bucket";
  readonly leaves: readonly Leaf[];
}

/** A page with slots, in the order of the keys. */
export interface Branch {
  readonly kind: "branch";
  readonly slots: readonly TreeNode[];
}

export type TreePage = Bucket | Branch;

/** Where a page stands: the hex digits with which the keys below it begin; none for the page of the root. */
export type PagePath = string;

/** Most leaves of a page without slots: it has then at most 2 KiB. */
export const maxBucketLeaves = 32;
/** Levels of the tree between a page with slots and those below it. */
export const pageLevels = 4;
const slotCount = 2 ** pageLevels;

const leafBytes = 2 * hashBytes;
const tags = { bucket: 0, branch: 1 };

/** Which slot a key goes to, in the page with this path. */
export function slotOf(key: Uint8Array, path: PagePath): number {
  const byte = key[path.length >> 1]!;
  return path.length % 2 === 0 ? byte >> 4 : byte & 15;
}

/** The path of the page in a slot. */
export function pathBelow(path: PagePath, slot: number): PagePath {
  return path + slot.toString(16);
}

/**
 * As it is stored: its kind, one byte. Leaves are key and hash of the value. Before what is in slots stands which of them
 * hold leaves and which pages, 16 bits each with the first slot's the highest.
 */
export function encodeTreePage(page: TreePage): Buffer {
  if (page.kind === "bucket") {
    return Buffer.concat([
      Buffer.from([tags.bucket]),
      ...page.leaves.flatMap(({ key, valueHash }) => [key, valueHash]),
    ]);
  }
  const { slots } = page;
  const head = Buffer.alloc(5);
  head[0] = tags.branch;
  head.writeUInt16BE(maskOf(slots, isLeaf), 1);
  head.writeUInt16BE(
    maskOf(slots, (node) => node !== undefined && !isLeaf(node)),
    3,
  );
  const parts = slots.flatMap((node) =>
    node === undefined ? [] : isLeaf(node) ? [node.key, node.valueHash] : [node.hash],
  );
  return Buffer.concat([head, ...parts]);
}

function maskOf(slots: readonly TreeNode[], has: (node: TreeNode) => boolean): number {
  return slots.reduce((mask, node, i) => (has(node) ? mask | (1 << (slotCount - 1 - i)) : mask), 0);
}

/** Reads a stored page. Throws a RangeError where the bytes are none. */
export function decodeTreePage(bytes: Uint8Array): TreePage {
  return bytes[0] === tags.bucket ? decodeBucket(bytes) : decodeBranch(bytes);
}

function decodeBucket(bytes: Uint8Array): Bucket {
  const count = (bytes.length - 1) / leafBytes;
  if (!Number.isInteger(count)) {
    throw new RangeError("A page of a tree is cut off.");
  }
  return { kind: "bucket", leaves: Array.from({ length: count }, (_, i) => leafAt(bytes, 1 + i * leafBytes)) };
}

function decodeBranch(bytes: Uint8Array): Branch {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes[0] !== tags.branch || bytes.length < 5) {
    throw new RangeError("A page of a tree is of no kind that there is.");
  }
  const [leaves, pages] = [view.getUint16(1), view.getUint16(3)];
  let at = 5;
  const slots = Array.from({ length: slotCount }, (_, i): TreeNode => {
    const bit = 1 << (slotCount - 1 - i);
    const from = at;
    if ((leaves & bit) !== 0) {
      at += leafBytes;
      return leafAt(bytes, from);
    }
    if ((pages & bit) !== 0) {
      at += hashBytes;
      return { hash: bytes.subarray(from, at) };
    }
    return undefined;
  });
  if (at !== bytes.length || (leaves & pages) !== 0) {
    throw new RangeError("A page of a tree has not the length that it says.");
  }
  return { kind: "branch", slots };
}

function leafAt(bytes: Uint8Array, at: number): Leaf {
  return { key: bytes.subarray(at, at + hashBytes), valueHash: bytes.subarray(at + hashBytes, at + leafBytes) };
}

/** What a page is to the one above it. */
export function nodeOf(page: TreePage, path: PagePath): TreeNode {
  return page.kind === "bucket"
    ? treeNodes.nodeOfLeaves(page.leaves, path.length * pageLevels)
    : levelsOf(page)[pageLevels]![0];
}

/** The nodes of a page with slots by their levels, from its slots up to its one node. */
export function levelsOf({ slots }: Branch): readonly (readonly TreeNode[])[] {
  const levels: (readonly TreeNode[])[] = [slots];
  for (let below: readonly TreeNode[] = slots; below.length > 1;) {
    below = Array.from({ length: below.length / 2 }, (_, i) => treeNodes.joinNodes(below[2 * i], below[2 * i + 1]));
    levels.push(below);
  }
  return levels;
}
