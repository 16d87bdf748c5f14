/**
 * Commitment tree. Every complete node is stored once and never changes. A root is stored with its frontier, the
 * incomplete nodes. A proof for any known root therefore takes one query, the leaves of a block update each node above
 * them once, and startup rebuilds nothing.
 */
import { treeDepth } from "./poseidon.js";

/** Root with the block that created it. Hashes are 0x and 64 lowercase hex digits. */
export interface MerkleRoot {
  readonly root: string;
  readonly blockNumber: bigint;
  readonly leafCount: number;
}

export interface MerklePath {
  readonly commitment: string;
  readonly leafIndex: number;
  /** Sibling of the path's node on each level, from the leaf upward. */
  readonly siblings: readonly string[];
  /** Side of the path's node on each level: 0 for left, 1 for right. */
  readonly pathIndices: readonly number[];
  readonly root: string;
  readonly blockNumber: bigint;
}

/** Result of a search for a path: the path, or the part that is missing. */
export type PathSearch =
  | (MerklePath & { readonly missing?: undefined })
  | { readonly missing: "commitment" | "root" | "commitment under this root" };

export interface MerkleTree {
  root(): MerkleRoot | Promise<MerkleRoot>;
  /**
   * Returns the root after a block; undefined if the block does not exist yet, or is too old for its root to be known.
   */
  rootAfter(blockNumber: bigint): Promise<MerkleRoot | undefined>;
  /** Returns the path of a commitment to a known root, or to the latest root. */
  path(commitment: string, root: string | undefined): PathSearch | Promise<PathSearch>;
}

/**
 * Number of latest blocks whose roots are known, including the latest block. Roots that were current within the last
 * {@link knownMinutes} minutes before the latest block's time are known as well.
 */
export const knownBlocks = 256;
export const knownMinutes = 10;
export const maxLeaves = 2 ** treeDepth;

export interface BlockPosition {
  readonly number: bigint;
  /** Time in the block's header. */
  readonly timeMs: number;
}
