/**
 * Computes the nodes above new leaves. Only complete nodes are stored, whose leaves all exist: they never change. At
 * most one node on each level is above both leaves and empty positions. Such a node belongs to a root and is computed
 * for it.
 */
import { emptyNodes, hashPair, treeDepth } from "./poseidon.js";

/** Adjacent nodes of one level. */
export interface NodeRun {
  /** Level in the tree: 0 for leaves, 20 for the root. */
  readonly level: number;
  /** Position of the first node on its level. */
  readonly position: number;
  readonly hashes: readonly bigint[];
}

/** Complete nodes by level, at most one for each level. */
export type Peaks = Readonly<Record<number, bigint>>;

/** Task of hashing one run of nodes. Has no side effects, so that another thread can execute it. */
export interface FoldTask {
  /** New complete nodes of one level. */
  readonly run: NodeRun;
  /** Level at which hashing stops. */
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
  const chunks = splitRun(complete, 2 ** chunkLevels);
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

function splitRun({ level, position, hashes }: NodeRun, size: number): NodeRun[] {
  const end = position + hashes.length;
  const runs: NodeRun[] = [];
  for (let start = position; start < end;) {
    const next = Math.min(end, (Math.floor(start / size) + 1) * size);
    runs.push({ level, position: start, hashes: hashes.slice(start - position, next - position) });
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
  for (let level = 0; level <= treeDepth; level++) {
    const complete = Math.floor(leafCount / 2 ** level);
    if (complete % 2 === 1) {
      const run = runs.findLast(
        ({ level: at, position, hashes }) => at === level && position + hashes.length === complete,
      );
      peaks[level] = run?.hashes.at(-1) ?? before[level]!;
    }
  }
  return peaks;
}

/**
 * Computes the root that a leaf's path leads to.
 *
 * @param hash hashes two children on a level.
 */
export function rootOfPath(
  leaf: bigint,
  siblings: readonly bigint[],
  pathIndices: readonly number[],
  hash: (left: bigint, right: bigint, level: number) => bigint = hashPair,
): bigint {
  return siblings.reduce(
    (node, sibling, level) => (pathIndices[level] === 0 ? hash(node, sibling, level) : hash(sibling, node, level)),
    leaf,
  );
}
