/**
 * Works out the nodes above new leaves. Only complete nodes are kept, those whose leaves are all there: they never
 * change. What lies above both leaves and empty places, one node on each level at most, belongs to a root and is worked
 * out for it.
 */
import { emptyNodes, hashPair, treeDepth } from "./poseidon.js";

/** Nodes of one level that stand side by side. */
export interface NodeRun {
  /** 0 for leaves, 20 for the root. */
  readonly level: number;
  /** Position of the first one on its level. */
  readonly position: number;
  readonly hashes: readonly bigint[];
}

/** By level, a complete node. */
export type Peaks = Readonly<Record<number, bigint>>;

/** What is folded: pure, so that it may happen in another thread. */
export interface FoldTask {
  /** New complete nodes of one level. */
  readonly run: NodeRun;
  /** The level to stop at. */
  readonly top: number;
  /** On each level where the node before the new ones is a left child: that node. */
  readonly peaks: Peaks;
}

/** The new complete nodes on the levels above a run, up to the top one. */
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

/** Levels that are folded in one piece: a chunk has 2^11 leaves, a tenth of a second of work. */
const chunkLevels = 11;

/** Runs tasks, all at the same time where it can. */
export type FoldAll = (tasks: readonly FoldTask[]) => Promise<readonly (readonly NodeRun[])[]>;

/**
 * All new complete nodes that these leaves make, the leaves among them.
 *
 * @param leafCount leaves that are there already; the new ones stand after them.
 * @param peaks on each level with an odd number of complete nodes, the last of these.
 */
export async function growTree(
  leafCount: number,
  leaves: readonly bigint[],
  peaks: Peaks,
  foldAll: FoldAll,
): Promise<NodeRun[]> {
  const whole: NodeRun = { level: 0, position: leafCount, hashes: leaves };
  const chunks = splitRun(whole, 2 ** chunkLevels);
  // Only the first chunk begins where something is before it; the others begin where a whole subtree does.
  const lower = await foldAll(chunks.map((run) => ({ run, top: chunkLevels, peaks })));
  const subtrees = lower.flatMap((runs) => runs.at(-1)!.hashes);
  const position = Math.floor(leafCount / 2 ** chunkLevels);
  const upper =
    subtrees.length === 0
      ? []
      : fold({ run: { level: chunkLevels, position, hashes: subtrees }, top: treeDepth, peaks });
  return [whole, ...lower.flat(), ...upper].filter(({ hashes }) => hashes.length > 0);
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
 * The nodes on the edge of a tree: on each level the one above both leaves and empty places, or undefined where there is
 * none. The last one, of level 20, is the root unless the tree is empty or full.
 *
 * @param peaks on each level with an odd number of complete nodes, the last of these.
 */
export function edgeOf(leafCount: number, peaks: Peaks): (bigint | undefined)[] {
  const edge: (bigint | undefined)[] = [undefined];
  for (let level = 0; level < treeDepth; level++) {
    const below = edge[level];
    const isOdd = Math.floor(leafCount / 2 ** level) % 2 === 1;
    if (isOdd) {
      edge.push(hashPair(peaks[level]!, below ?? emptyNodes()[level]!));
    } else {
      edge.push(below === undefined ? undefined : hashPair(below, emptyNodes()[level]!));
    }
  }
  return edge;
}

/** The peaks after a tree has grown. */
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
 * The root that a path leads a leaf to.
 *
 * @param hash of two children on this level.
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
