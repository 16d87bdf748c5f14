/**
 * The commitment tree. Every complete node is stored once and never changes; a root comes with the nodes on its edge. So a
 * proof for any root that is known is one query, a block's leaves touch each node above them once, and a boot has nothing
 * to rebuild.
 */
import { CorruptionError } from "../base/errors/corruption.js";
import { edgeOf, type FoldAll, growTree, type NodeRun, type Peaks, peaksAfter } from "./fold.js";
import { emptyNodes, toHex, treeDepth } from "./poseidon.js";

/** A root and when it was. Hashes are 0x and 64 lower-case hex digits. */
export interface MerkleRoot {
  readonly root: string;
  /** The block that made it. */
  readonly blockNumber: bigint;
  readonly leafCount: number;
}

/** A commitment's path to a root. */
export interface MerklePath {
  readonly commitment: string;
  readonly leafIndex: number;
  /** The node beside the path on each level, from the leaf upwards. */
  readonly siblings: readonly string[];
  /** On each level, 0 when the path's node is the left one. */
  readonly pathIndices: readonly number[];
  readonly root: string;
  readonly blockNumber: bigint;
}

/** What a look for a path gives: the path, or what it lacks. */
export type PathSearch =
  | (MerklePath & { readonly missing?: undefined })
  | { readonly missing: "commitment" | "root" | "commitment under this root" };

export interface MerkleTree {
  /** The newest root. */
  root(): MerkleRoot | Promise<MerkleRoot>;
  /** The root after a block; undefined for a block that is not there yet, or so old that its root need not be known. */
  rootAfter(blockNumber: bigint): Promise<MerkleRoot | undefined>;
  /** The path of a commitment to a root that is known, or to the newest one. */
  path(commitment: string, root: string | undefined): PathSearch | Promise<PathSearch>;
}

/**
 * Roots that were current after one of so many blocks, the newest among them, are known, and so are those that were
 * current within so long before the newest block's time.
 */
export const knownBlocks = 256;
export const knownMinutes = 10;
export const maxLeaves = 2 ** treeDepth;

/** A block, as far as it matters here. */
export interface BlockMoment {
  readonly number: bigint;
  /** As its header says it. */
  readonly timeMs: number;
}

/** A root as it is stored: with the nodes above both leaves and empty places, by level, zero where there is none. */
export interface NewRoot {
  readonly root: string;
  /** The block that makes it. */
  readonly block: BlockMoment;
  readonly leafCount: number;
  readonly edge: readonly bigint[];
}

/** The tree as blocks see it and change it. */
export interface TreeChanges {
  /** Reads ahead which of these commitments are in the tree. */
  expect(commitments: readonly string[]): Promise<void>;
  /** Whether a commitment is in the tree. */
  has(commitment: string): Promise<boolean>;
  /**
   * Whether a root was current after one of the {@link knownBlocks} blocks before this one, or at some time within
   * the {@link knownMinutes} before this one's.
   */
  isKnownRoot(root: string, block: BlockMoment): Promise<boolean>;
  /** The newest root. */
  newest(): Promise<MerkleRoot>;
  /** On each level with an odd number of complete nodes, the last of these. */
  peaks(leafCount: number): Promise<Peaks>;
  /** Stores complete nodes; the first run is that of the leaves. */
  insertNodes(runs: readonly NodeRun[]): Promise<void>;
  /** Stores a root, and forgets those that are not known any more. */
  insertRoot(root: NewRoot): Promise<void>;
}

/**
 * Adds leaves, none of which is in the tree, and gives the new root.
 *
 * @param block the one that adds them.
 * @param newest the newest root, where it is known.
 */
export async function appendLeaves(
  tree: TreeChanges,
  { leaves, block, foldAll }: { leaves: readonly bigint[]; block: BlockMoment; foldAll: FoldAll },
  newest?: MerkleRoot,
): Promise<Pick<MerkleRoot, "root" | "leafCount">> {
  const { leafCount: before, root: rootBefore } = newest ?? (await tree.newest());
  const peaks = await tree.peaks(before);
  if (rootOf(before, peaks) !== rootBefore) {
    throw new CorruptionError("The nodes of the commitment tree in the database do not lead to its newest root.");
  }
  const runs = await growTree(before, leaves, peaks, foldAll);
  await tree.insertNodes(runs);
  const leafCount = before + leaves.length;
  const after = peaksAfter(leafCount, peaks, runs);
  const edge = edgeOf(leafCount, after);
  const root = rootOfEdge(edge, after);
  newestWorkedOut = { leafCount, peaks: after, root };
  const above = edge.slice(1, treeDepth).map((node) => node ?? 0n);
  await tree.insertRoot({ root, block, leafCount, edge: above });
  return { root, leafCount };
}

/** The root that was worked out last. It is that of the next block's first look, whatever became of this one. */
let newestWorkedOut: { readonly leafCount: number; readonly peaks: Peaks; readonly root: string } | undefined;

/** The root over so many leaves. Empty where a node is missing. */
export function rootOf(leafCount: number, peaks: Peaks): string {
  const levels = Array.from({ length: treeDepth + 1 }, (_, level) => level);
  if (newestWorkedOut?.leafCount === leafCount && levels.every((at) => newestWorkedOut!.peaks[at] === peaks[at])) {
    return newestWorkedOut.root;
  }
  const isWhole = levels.every((level) => Math.floor(leafCount / 2 ** level) % 2 === 0 || peaks[level] !== undefined);
  return isWhole ? rootOfEdge(edgeOf(leafCount, peaks), peaks) : "";
}

function rootOfEdge(edge: readonly (bigint | undefined)[], peaks: Peaks): string {
  return toHex(edge[treeDepth] ?? peaks[treeDepth] ?? emptyNodes()[treeDepth]!);
}
