/**
 * Commitment tree. Every complete node is stored once and never changes. A root is stored with its frontier, the
 * incomplete nodes. A proof for any known root therefore takes one query, the leaves of a block update each node above
 * them once, and startup rebuilds nothing.
 */
import { CorruptionError } from "../base/errors/corruption.js";
import { frontierOf, type FoldAll, appendToTree, type NodeRun, type Peaks, peaksAfter } from "./fold.js";
import { emptyNodes, toHex, treeDepth } from "./poseidon.js";

/** Root with the block that created it. Hashes are 0x and 64 lowercase hex digits. */
export interface MerkleRoot {
  readonly root: string;
  /** Number of the block that created the root. */
  readonly blockNumber: bigint;
  readonly leafCount: number;
}

/** Path of a commitment to a root. */
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

/** Number and time of a block. */
export interface BlockPosition {
  readonly number: bigint;
  /** Time in the block's header. */
  readonly timeMs: number;
}

/**
 * Root as stored, with its frontier: the nodes above both leaves and empty positions, by level; zero where there is
 * none.
 */
export interface NewRoot {
  readonly root: string;
  /** Block that creates the root. */
  readonly block: BlockPosition;
  readonly leafCount: number;
  readonly frontier: readonly bigint[];
}

/** Tree as seen and changed by blocks. */
export interface TreeChanges {
  /** Prefetches which of these commitments are in the tree. */
  prefetch(commitments: readonly string[]): Promise<void>;
  /** Returns true if a commitment was in the tree before the block. */
  has(commitment: string): Promise<boolean>;
  /**
   * Returns true if a root was current after one of the {@link knownBlocks} blocks before this one. Roots that were
   * current at any time within {@link knownMinutes} minutes before this block's time count as well.
   */
  isKnownRoot(root: string, block: BlockPosition): Promise<boolean>;
  latest(): Promise<MerkleRoot>;
  /** Returns, for each level with an odd number of complete nodes, the last of these. */
  peaks(leafCount: number): Promise<Peaks>;
  /** Stores complete nodes. The first run must contain the leaves. */
  insertNodes(runs: readonly NodeRun[]): Promise<void>;
  /** Stores a root, and deletes roots that are no longer known. */
  insertRoot(root: NewRoot): Promise<void>;
}

/**
 * Appends leaves that are not in the tree yet, and returns the new root.
 *
 * @param block block that adds the leaves.
 * @param latest the latest root, if the caller has it.
 * @throws CorruptionError if the stored nodes do not lead to the latest root.
 */
export async function appendLeaves(
  tree: TreeChanges,
  { leaves, block, foldAll }: { leaves: readonly bigint[]; block: BlockPosition; foldAll: FoldAll },
  latest?: MerkleRoot,
): Promise<Pick<MerkleRoot, "root" | "leafCount">> {
  const { leafCount: before, root: rootBefore } = latest ?? (await tree.latest());
  const peaks = await tree.peaks(before);
  if (rootOf(before, peaks) !== rootBefore) {
    throw new CorruptionError("The nodes of the commitment tree in the database do not lead to its latest root.");
  }
  const runs = await appendToTree(before, leaves, peaks, foldAll);
  await tree.insertNodes(runs);
  const leafCount = before + leaves.length;
  const after = peaksAfter(leafCount, peaks, runs);
  const frontier = frontierOf(leafCount, after);
  const root = rootOfFrontier(frontier, after);
  latestComputed = { leafCount, peaks: after, root };
  const innerLevels = frontier.slice(1, treeDepth).map((node) => node ?? 0n);
  await tree.insertRoot({ root, block, leafCount, frontier: innerLevels });
  return { root, leafCount };
}

/**
 * Root computed last, with its inputs. The next block usually checks this root first. The inputs are compared, so the
 * root stays valid if this block is rolled back.
 */
let latestComputed: { readonly leafCount: number; readonly peaks: Peaks; readonly root: string } | undefined;

/** Computes the root over a number of leaves. Returns an empty string if a peak is missing. */
export function rootOf(leafCount: number, peaks: Peaks): string {
  const levels = Array.from({ length: treeDepth + 1 }, (_, level) => level);
  if (latestComputed?.leafCount === leafCount && levels.every((at) => latestComputed!.peaks[at] === peaks[at])) {
    return latestComputed.root;
  }
  const isComplete = levels.every(
    (level) => Math.floor(leafCount / 2 ** level) % 2 === 0 || peaks[level] !== undefined,
  );
  return isComplete ? rootOfFrontier(frontierOf(leafCount, peaks), peaks) : "";
}

function rootOfFrontier(frontier: readonly (bigint | undefined)[], peaks: Peaks): string {
  return toHex(frontier[treeDepth] ?? peaks[treeDepth] ?? emptyNodes()[treeDepth]!);
}
