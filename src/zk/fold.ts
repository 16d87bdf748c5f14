/**
 * Computes the nodes above new leaves. Only complete nodes are stored, whose leaves all exist: they never change. At
 * most one node on each level is above both leaves and empty positions. Such a node belongs to a root and is computed
 * for it.
 */
import { emptyNodes, hashPair, toHex, treeDepth } from "./poseidon.js";

export interface NodeRun {
  /** Level in the tree: 0 for leaves, 20 for the root. */
  readonly level: number;
  readonly position: number;
  readonly hashes: readonly bigint[];
}

/** Complete nodes by level, at most one for each level. */
export type Peaks = Readonly<Record<number, bigint>>;

/** Task of hashing one run of nodes. Has no side effects, so that another thread can execute it. */
interface FoldTask {
  readonly run: NodeRun;
  readonly top: number;
  /** Left siblings of the run, by level: the node before the new ones on each level where it is a left child. */
  readonly peaks: Peaks;
}

/** Computes the new complete nodes on the levels above a run, up to the top level. */
export function fold({ run, top, peaks }: FoldTask): NodeRun[] {
  const runs: NodeRun[] = [];
  let { position, hashes } = run;
  for (let level = run.level; level < top; level++) {
    const children = position % 2 === 1 ? [peaks[level]!, ...hashes] : hashes;
    position = Math.floor(position / 2);
    hashes = Array.from({ length: Math.floor(children.length / 2) }, (_, i) =>
      hashPair(children[2 * i]!, children[2 * i + 1]!),
    );
    runs.push({ level: level + 1, position, hashes });
  }
  return runs;
}

/** Number of levels that one task hashes. A chunk has 2^11 leaves, which take a tenth of a second. */
const chunkLevels = 11;

/** Executes all tasks, in parallel if possible. Returns the results in the order of the tasks. */
export type FoldAll = (tasks: readonly FoldTask[]) => Promise<readonly (readonly NodeRun[])[]>;

/**
 * Computes all new complete nodes that the new leaves produce, including the leaves.
 *
 * @param leafCount number of existing leaves; the new leaves follow them.
 * @param peaks for each level with an odd number of complete nodes, the last of these.
 */
export async function appendToTree(
  leafCount: number,
  leaves: readonly bigint[],
  peaks: Peaks,
  foldAll: FoldAll,
): Promise<NodeRun[]> {
  const complete: NodeRun = { level: 0, position: leafCount, hashes: leaves };
  const chunks = splitLeaves(leafCount, leaves);
  // Only the first chunk can follow existing nodes of its subtree. The other chunks start at the boundary of a subtree.
  const lower = await foldAll(chunks.map((run) => ({ run, top: chunkLevels, peaks })));
  const subtrees = lower.flatMap((runs) => runs.at(-1)!.hashes);
  const position = Math.floor(leafCount / 2 ** chunkLevels);
  const upper =
    subtrees.length === 0
      ? []
      : fold({ run: { level: chunkLevels, position, hashes: subtrees }, top: treeDepth, peaks });
  return [complete, ...lower.flat(), ...upper].filter(({ hashes }) => hashes.length > 0);
}

/** Splits leaves at the boundaries of the subtrees of chunks. */
function splitLeaves(from: number, leaves: readonly bigint[]): NodeRun[] {
  const size = 2 ** chunkLevels;
  const end = from + leaves.length;
  const runs: NodeRun[] = [];
  for (let start = from; start < end;) {
    const next = Math.min(end, (Math.floor(start / size) + 1) * size);
    runs.push({ level: 0, position: start, hashes: leaves.slice(start - from, next - from) });
    start = next;
  }
  return runs;
}

/**
 * Returns the frontier of a tree: for each level, the node above both leaves and empty positions, or undefined if there
 * is none. The last node, of level 20, is the root unless the tree is empty or full.
 *
 * @param peaks for each level with an odd number of complete nodes, the last of these.
 */
export function frontierOf(leafCount: number, peaks: Peaks): (bigint | undefined)[] {
  const frontier: (bigint | undefined)[] = [undefined];
  for (let level = 0; level < treeDepth; level++) {
    const child = frontier[level];
    const isOdd = Math.floor(leafCount / 2 ** level) % 2 === 1;
    if (isOdd) {
      frontier.push(hashPair(peaks[level]!, child ?? emptyNodes()[level]!));
    } else {
      frontier.push(child === undefined ? undefined : hashPair(child, emptyNodes()[level]!));
    }
  }
  return frontier;
}

/**
 * Returns the peaks of a tree after leaves were appended.
 *
 * @param leafCount number of leaves after the change.
 * @param runs all new complete nodes.
 */
export function peaksAfter(leafCount: number, before: Peaks, runs: readonly NodeRun[]): Peaks {
  const peaks: Record<number, bigint> = {};
  for (const [level, complete] of peakLevels(leafCount)) {
    const run = runs.findLast(
      ({ level: at, position, hashes }) => at === level && position + hashes.length === complete,
    );
    peaks[level] = run?.hashes.at(-1) ?? before[level]!;
  }
  return peaks;
}

/** Lists the levels with an odd number of complete nodes, with that number. */
export function peakLevels(leafCount: number): (readonly [level: number, complete: number])[] {
  const levels = Array.from(
    { length: treeDepth + 1 },
    (_, level) => [level, Math.floor(leafCount / 2 ** level)] as const,
  );
  return levels.filter(([, complete]) => complete % 2 === 1);
}

/**
 * Appends leaves, and computes the new root.
 *
 * @param leafCount number of existing leaves.
 */
export async function growTree(leafCount: number, peaks: Peaks, leaves: readonly bigint[], foldAll: FoldAll) {
  const runs = await appendToTree(leafCount, leaves, peaks, foldAll);
  const after = leafCount + leaves.length;
  const newPeaks = peaksAfter(after, peaks, runs);
  const frontier = frontierOf(after, newPeaks);
  const root = rootOfFrontier(frontier, newPeaks);
  latestComputed = { leafCount: after, peaks: newPeaks, root };
  return {
    root,
    leafCount: after,
    peaks: newPeaks,
    runs,
    /** Nodes above both leaves and empty positions below the root, by level; zero where there is none. */
    frontier: frontier.slice(1, treeDepth).map((node) => node ?? 0n),
  };
}

/**
 * Root computed last, with its inputs. The next block usually checks this root first. The inputs are compared, so the
 * root stays valid if this block is rolled back.
 */
let latestComputed: { readonly leafCount: number; readonly peaks: Peaks; readonly root: string } | undefined;

/** Computes the root over a number of leaves. Returns an empty string if a peak is missing. */
export function rootOf(leafCount: number, peaks: Peaks): string {
  const levels = peakLevels(leafCount);
  const latest = latestComputed;
  if (latest?.leafCount === leafCount && levels.every(([level]) => latest.peaks[level] === peaks[level])) {
    return latest.root;
  }
  const isComplete = levels.every(([level]) => peaks[level] !== undefined);
  return isComplete ? rootOfFrontier(frontierOf(leafCount, peaks), peaks) : "";
}

function rootOfFrontier(frontier: readonly (bigint | undefined)[], peaks: Peaks): string {
  return toHex(frontier[treeDepth] ?? peaks[treeDepth] ?? emptyNodes()[treeDepth]!);
}

/** Computes the root that a leaf's path leads to. */
export function rootOfPath(leaf: bigint, siblings: readonly bigint[], pathIndices: readonly number[]): bigint {
  return siblings.reduce(
    (node, sibling, level) => (pathIndices[level] === 0 ? hashPair(node, sibling) : hashPair(sibling, node)),
    leaf,
  );
}
