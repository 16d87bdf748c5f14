/** Snapshot format: encoding and decoding. */
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  type Snapshot,
  type SnapshotChunk,
  SnapshotChunkSchema,
  type SnapshotCommitmentTree,
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
  readonly tree: SnapshotCommitmentTree;
  /** Prefix of each chunk. */
  readonly prefixes: readonly string[];
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

/**
 * Returns the prefix of each chunk: the common leading bits of its keys, as digits.
 *
 * @throws WrongSnapshot if the chunks have gaps or overlap.
 */
function prefixesOf(chunks: readonly SnapshotChunk[]): string[] {
  const prefixes: string[] = [];
  /** Lowest prefix after the chunks so far, without trailing zeros. */
  let next: string | undefined = "";
  for (const { depth } of chunks) {
    if (next === undefined || depth > maxDepth || next.length > depth) {
      throw new WrongSnapshot("The chunks are not contiguous.");
    }
    const prefix: string = next.padEnd(depth, "0");
    const lastZero = prefix.lastIndexOf("0");
    prefixes.push(prefix);
    next = lastZero < 0 ? undefined : `${prefix.slice(0, lastZero)}1`;
  }
  if (next !== undefined) {
    throw new WrongSnapshot("The chunks do not cover the complete state.");
  }
  return prefixes;
}

/** Computes the root of the state tree from the chunks. */
export function foldChunks(chunks: readonly SnapshotChunk[]): Uint8Array {
  let at = 0;
  function fold(depth: number): TreeNode {
    const chunk = chunks[at];
    if (chunk === undefined || depth > maxDepth) {
      throw new WrongSnapshot("The chunks do not cover the complete state.");
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
export function areLeavesOf({ snapshot, prefixes }: SnapshotDescription, index: number, leaves: readonly Leaf[]) {
  const [chunk, bits] = [snapshot.chunks[index]!, Array.from(prefixes[index]!, Number)];
  const inOrder = leaves.every(({ key }, i) => i === 0 || Buffer.compare(leaves[i - 1]!.key, key) < 0);
  if (!inOrder || !leaves.every(({ key }) => bits.every((bit, at) => bitOf(key, at) === bit))) {
    return false;
  }
  const [node, expected] = [treeNodes.nodeOfLeaves(leaves, chunk.depth), nodeOfChunk(chunk)];
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
  return { id: sha256(bytes), bytes, snapshot, tree: commitmentTree, prefixes: prefixesOf(chunks) };
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
