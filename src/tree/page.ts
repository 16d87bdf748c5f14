/**
 * Pages of a tree, each stored in one database row. A page covers all leaves whose keys begin with its path. A bucket
 * page holds up to {@link maxBucketLeaves} leaves itself. A branch page has 16 slots, one for each next hex digit of a
 * key. A slot is empty, or holds one leaf or the hash of the page below. The kind of a page does not affect its hash.
 */
import { hashBytes } from "./hashes.js";
import { treeNodes } from "./node-hashes.js";
import { isInner, isLeaf, type TreeNode } from "./nodes.js";
import type { Leaf } from "./path.js";

/** Page that holds leaves, sorted by key. */
export interface Bucket {
  readonly kind: "bucket";
  readonly leaves: readonly Leaf[];
}

/** Page that holds 16 slots, sorted by the next hex digit of the key. */
export interface Branch {
  readonly kind: "branch";
  readonly slots: readonly TreeNode[];
}

export type TreePage = Bucket | Branch;

/** Path of a page: the hex digits with which the keys of its leaves begin; empty for the root page. */
export type PagePath = string;

/** Limit on the leaves of a bucket, which keeps its leaves within 2 KiB. */
export const maxBucketLeaves = 32;
/** Number of tree levels between a branch page and the pages below it. */
export const pageLevels = 4;
const slotCount = 2 ** pageLevels;

const leafBytes = 2 * hashBytes;
const tags = { bucket: 0, branch: 1 };

/** Returns the slot that a key belongs to, in the page at this path. */
export function slotOf(key: Uint8Array, path: PagePath): number {
  const byte = key[path.length >> 1]!;
  return path.length % 2 === 0 ? byte >> 4 : byte & 15;
}

export function pathBelow(path: PagePath, slot: number): PagePath {
  return path + slot.toString(16);
}

/**
 * Encodes a page for storage. The first byte is the kind. A bucket continues with the key and the value hash of each
 * leaf. A branch continues with two 16-bit masks, of the slots with leaves and of those with pages, and then with the
 * contents of the slots. The highest bit of a mask is the first slot.
 */
export function encodeTreePage(page: TreePage): Buffer {
  if (page.kind === "bucket") {
    return Buffer.concat([
      Buffer.from([tags.bucket]),
      ...page.leaves.flatMap(({ key, valueHash }) => [key, valueHash]),
    ]);
  }
  const { slots } = page;
  const header = Buffer.alloc(5);
  header[0] = tags.branch;
  header.writeUInt16BE(maskOf(slots, isLeaf), 1);
  header.writeUInt16BE(maskOf(slots, isInner), 3);
  const parts = slots.flatMap((node) =>
    node === undefined ? [] : isLeaf(node) ? [node.key, node.valueHash] : [node.hash],
  );
  return Buffer.concat([header, ...parts]);
}

/** Returns a mask of the slots whose nodes match; the highest bit is the first slot. */
function maskOf(slots: readonly TreeNode[], matches: (node: TreeNode) => boolean): number {
  return slots.reduce((mask, node, i) => (matches(node) ? mask | (1 << (slotCount - 1 - i)) : mask), 0);
}

/**
 * Decodes a stored page.
 *
 * @throws RangeError if the bytes are not a valid page.
 */
export function decodeTreePage(bytes: Uint8Array): TreePage {
  return bytes[0] === tags.bucket ? decodeBucket(bytes) : decodeBranch(bytes);
}

function decodeBucket(bytes: Uint8Array): Bucket {
  const count = (bytes.length - 1) / leafBytes;
  if (!Number.isInteger(count)) {
    throw new RangeError("A page of a tree is truncated.");
  }
  return { kind: "bucket", leaves: Array.from({ length: count }, (_, i) => leafAt(bytes, 1 + i * leafBytes)) };
}

function decodeBranch(bytes: Uint8Array): Branch {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes[0] !== tags.branch || bytes.length < 5) {
    throw new RangeError("A page of a tree has an unknown kind.");
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
    throw new RangeError("A page of a tree does not have the length in its header.");
  }
  return { kind: "branch", slots };
}

function leafAt(bytes: Uint8Array, at: number): Leaf {
  return { key: bytes.subarray(at, at + hashBytes), valueHash: bytes.subarray(at + hashBytes, at + leafBytes) };
}

/** Returns the node of a page, as the page above it stores it. */
export function nodeOf(page: TreePage, path: PagePath): TreeNode {
  return page.kind === "bucket"
    ? treeNodes.nodeOfLeaves(page.leaves, path.length * pageLevels)
    : levelsOf(page)[pageLevels]![0];
}

/** Returns the nodes of a branch page by level, from its 16 slots up to its single top node. */
export function levelsOf({ slots }: Branch): readonly (readonly TreeNode[])[] {
  const levels: (readonly TreeNode[])[] = [slots];
  for (let below: readonly TreeNode[] = slots; below.length > 1;) {
    below = Array.from({ length: below.length / 2 }, (_, i) => treeNodes.joinNodes(below[2 * i], below[2 * i + 1]));
    levels.push(below);
  }
  return levels;
}
