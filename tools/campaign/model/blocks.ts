/** Chain as observed on all nodes. Detects forks, gaps and heads that go back. */
import type { ReadContext, Head, VerifiedBlock } from "./history.js";

/** Error in the chain. */
export interface ChainFault {
  readonly column: "lost" | "doubled" | "torn";
  readonly sentence: string;
}

export function createObservedChain(nameOf: (node: number) => string, genesisHash: string) {
  const hashes = new Map<number, { readonly hash: string; readonly node: number }>([
    [0, { hash: genesisHash, node: 0 }],
  ]);
  const [generations, heads] = [new Map<number, number>(), new Map<number, number>()];
  let height = 0;
  const generationOf = (node: number): number => generations.get(node) ?? 0;

  function findConflict(node: number, { number, hash }: Head): ChainFault | undefined {
    const known = hashes.get(number);
    if (known === undefined) {
      hashes.set(number, { hash, node });
    } else if (known.hash !== hash) {
      const [one, other] = [`${known.hash} from ${nameOf(known.node)}`, `${hash} from ${nameOf(node)}`];
      return { column: "doubled", sentence: `Block ${number} is ${one} and ${other}.` };
    }
    return undefined;
  }

  return {
    generationOf,
    /** Returns the highest head that a node has reported so far. Call it before a read. */
    startRead: (node: number): ReadContext => ({ node, generation: generationOf(node), head: heads.get(node) ?? 0 }),
    /** Records the head that a node reports. Returns the error, if any. */
    recordHead({ node, generation, head }: ReadContext, seen: Head): ChainFault | undefined {
      const isSameGeneration = generation === generationOf(node);
      if (isSameGeneration) {
        heads.set(node, Math.max(heads.get(node) ?? 0, seen.number));
      }
      if (isSameGeneration && seen.number < head) {
        heads.set(node, seen.number);
        return { column: "lost", sentence: `The head of ${nameOf(node)} went back from ${head} to ${seen.number}.` };
      }
      return findConflict(node, seen);
    },
    /** Records a block of a node: the next one or an earlier one. Returns the error, if any. */
    recordBlock(node: number, block: VerifiedBlock): ChainFault | undefined {
      const fault = findConflict(node, block);
      if (fault !== undefined || block.number <= height) {
        return fault;
      }
      const previous = hashes.get(block.number - 1);
      if (block.number !== height + 1 || previous?.hash !== block.previousHash) {
        const sentence = `Block ${block.number} of ${nameOf(node)} does not follow block ${height}.`;
        return { column: "torn", sentence };
      }
      height = block.number;
      return undefined;
    },
    /** Number of the latest block that was read in full, with all blocks before it. */
    get height() {
      return height;
    },
    /** Records that the database of a node was emptied, so its head may go back. */
    resetNode: (node: number): void => {
      generations.set(node, generationOf(node) + 1);
      heads.delete(node);
    },
  };
}
