/** Snapshot format: encoding and decoding. */
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  type Snapshot,
  type SnapshotChunk,
  SnapshotChunkSchema,
  type SnapshotEntry,
  SnapshotEntrySchema,
  SnapshotSchema,
} from "../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { sha256 } from "../base/crypto/hash.js";
import { bitOf, hashBytes, isSame, maxDepth } from "../tree/hashes.js";
import { treeNodes } from "../tree/node-hashes.js";
import { isLeaf, type TreeNode } from "../tree/nodes.js";
import type { Leaf } from "../tree/path.js";

/** Target size of a chunk when a snapshot is created, in bytes before compression. */
export const targetChunkBytes = 4 * 1024 * 1024;
/** Limit on the size of a chunk that is accepted, in bytes before compression. */
export const maxChunkBytes = 8 * 1024 * 1024;
/** Limit on the chunks of a snapshot; their descriptions must fit one message. */
const maxChunks = 40_000;

/** Error of an invalid snapshot. */
export class WrongSnapshot extends Error {
  override readonly name = "WrongSnapshot";
}

/** Leaf of the state tree with its value. */
export interface Entry {
  readonly leaf: Leaf;
  /** Encoded SnapshotEntry. */
  readonly bytes: Uint8Array;
}

/** Decoded description of a snapshot. */
export interface SnapshotDescription {
  /** Snapshot ID, the SHA-256 hash of the encoded description: 0x and 64 lower-case hex digits. */
  readonly id: string;
  readonly bytes: Uint8Array;
  readonly snapshot: Snapshot;
}

/** Describes a chunk: its subtree of the state tree by depth and hash, and the size and hash of its content. */
export function describeChunk(depth: number, node: TreeNode, content: Uint8Array): SnapshotChunk {
  return create(SnapshotChunkSchema, {
    depth,
    node:
      node === undefined
        ? { case: undefined }
        : isLeaf(node)
          ? { case: "leaf", value: Buffer.concat([node.key, node.valueHash]) }
          : { case: "inner", value: node.hash },
    sizeBytes: content.length,
    sha256: node === undefined ? new Uint8Array() : Buffer.from(sha256(content).slice(2), "hex"),
  });
}

function nodeOfChunk({ node }: SnapshotChunk): TreeNode {
  switch (node.case) {
    case undefined:
      return undefined;
    case "leaf":
      if (node.value.length !== 2 * hashBytes) {
        throw new WrongSnapshot("A chunk has no leaf.");
      }
      return { key: node.value.subarray(0, hashBytes), valueHash: node.value.subarray(hashBytes) };
    case "inner":
      if (node.value.length !== hashBytes) {
        throw new WrongSnapshot("A chunk has no node.");
      }
      return { hash: node.value };
  }
}

/** Returns the prefix that follows another one of this depth; undefined after the last one. */
function nextPrefix(prefix: Uint8Array, depth: number): Uint8Array | undefined {
  const next = Uint8Array.from(prefix);
  for (let at = depth - 1; at >= 0; at--) {
    const mask = 1 << (7 - (at & 7));
    if ((next[at >> 3]! & mask) === 0) {
      next[at >> 3]! |= mask;
      return next;
    }
    next[at >> 3]! &= ~mask;
  }
  return undefined;
}

/**
 * Returns the prefix of each chunk: the common leading bits of its keys, padded with zeros to a key.
 *
 * @throws WrongSnapshot if the chunks have gaps or overlap.
 */
export function prefixesOf(chunks: readonly Pick<SnapshotChunk, "depth">[]): Uint8Array[] {
  const prefixes: Uint8Array[] = [];
  let next: Uint8Array | undefined = new Uint8Array(hashBytes);
  for (const { depth } of chunks) {
    if (next === undefined || depth > maxDepth || next.some((_, byte) => bitsBelow(next!, depth, byte) !== 0)) {
      throw new WrongSnapshot("The chunks are not contiguous.");
    }
    prefixes.push(next);
    next = nextPrefix(next, depth);
  }
  if (next !== undefined) {
    throw new WrongSnapshot("The chunks leave a part of the state out.");
  }
  return prefixes;
}

/** Returns the bits of one byte of a key that lie below a depth. */
function bitsBelow(key: Uint8Array, depth: number, byte: number): number {
  const prefixBits = Math.min(Math.max(depth - byte * 8, 0), 8);
  return key[byte]! & (0xff >> prefixBits);
}

/** Computes the root of the state tree from the chunks. */
export function foldChunks(chunks: readonly SnapshotChunk[]): Uint8Array {
  let at = 0;
  function fold(depth: number): TreeNode {
    const chunk = chunks[at];
    if (chunk === undefined || depth > maxDepth) {
      throw new WrongSnapshot("The chunks leave a part of the state out.");
    }
    if (chunk.depth === depth) {
      at++;
      return nodeOfChunk(chunk);
    }
    return treeNodes.joinNodes(fold(depth + 1), fold(depth + 1));
  }
  return treeNodes.hashOfNode(fold(0));
}

/** Returns true if the leaves are in key order and match the prefix and the node hash of a chunk. */
export function areLeavesOf(chunk: SnapshotChunk, prefix: Uint8Array, leaves: readonly Leaf[]): boolean {
  for (const { key } of leaves) {
    for (let at = 0; at < chunk.depth; at++) {
      if (bitOf(key, at) !== bitOf(prefix, at)) {
        return false;
      }
    }
  }
  const inOrder = leaves.every(({ key }, i) => i === 0 || Buffer.compare(leaves[i - 1]!.key, key) < 0);
  const [node, expected] = [inOrder ? treeNodes.nodeOfLeaves(leaves, chunk.depth) : undefined, nodeOfChunk(chunk)];
  return (
    isLeaf(node) === isLeaf(expected) &&
    (node === undefined) === (expected === undefined) &&
    isSame(treeNodes.hashOfNode(node), treeNodes.hashOfNode(expected))
  );
}

/** Decodes the description of a snapshot. Throws WrongSnapshot. */
export function decodeDescription(bytes: Uint8Array): SnapshotDescription {
  let snapshot: Snapshot;
  try {
    snapshot = fromBinary(SnapshotSchema, bytes);
  } catch {
    throw new WrongSnapshot("It cannot be decoded.");
  }
  const { chunks, commitmentTree } = snapshot;
  if (chunks.length > maxChunks || commitmentTree === undefined || chunks.some((c) => c.sizeBytes > maxChunkBytes)) {
    throw new WrongSnapshot("It is not a snapshot.");
  }
  prefixesOf(chunks);
  return { id: sha256(bytes), bytes, snapshot };
}

const lengthBytes = 4;

/** Encodes the entries of a chunk, each with a 4-byte length prefix. */
export function encodeEntries(entries: readonly Pick<Entry, "bytes">[]): Buffer {
  return Buffer.concat(entries.flatMap(({ bytes }) => [encodeLength(bytes.length), bytes]));
}

export function encodeLength(length: number): Buffer {
  const bytes = Buffer.alloc(lengthBytes);
  bytes.writeUInt32BE(length);
  return bytes;
}

/** Decodes the entries of a chunk. Throws WrongSnapshot. */
export function decodeEntries(content: Uint8Array): SnapshotEntry[] {
  const buffer = Buffer.from(content.buffer, content.byteOffset, content.length);
  const entries: SnapshotEntry[] = [];
  for (let at = 0; at < buffer.length;) {
    const end = at + lengthBytes <= buffer.length ? at + lengthBytes + buffer.readUInt32BE(at) : Infinity;
    if (end > buffer.length) {
      throw new WrongSnapshot("A chunk is truncated.");
    }
    try {
      entries.push(fromBinary(SnapshotEntrySchema, buffer.subarray(at + lengthBytes, end)));
    } catch {
      throw new WrongSnapshot("An entry of a chunk cannot be decoded.");
    }
    at = end;
  }
  return entries;
}

export function encodeEntry(entry: NonNullable<MessageInitShape<typeof SnapshotEntrySchema>["entry"]>): Uint8Array {
  return toBinary(SnapshotEntrySchema, create(SnapshotEntrySchema, { entry }));
}
