/** The one chain that there may be, as it was seen on any node at any time. */
import type { Asked, Head, SeenBlock } from "./history.js";

/** The chain. */
export interface SeenChain {
  /** What a node has said of its head so far. */
  readonly asking: (node: number) => Asked;
  readonly lifeOf: (node: number) => number;
  /** A node says that this is its newest block. @returns what is wrong with that */
  sawHead(asked: Asked, head: Head): ChainFault | undefined;
  /** A node gave this block, the next one or an earlier one. @returns what is wrong with that */
  sawBlock(node: number, block: SeenBlock): ChainFault | undefined;
  /** The newest block that was seen as a whole, with all before it. */
  readonly height: number;
  /** The database of a node was taken away: it may go back. */
  readonly forget: (node: number) => void;
}

/** What is wrong with the chain. */
export interface ChainFault {
  readonly column: "lost" | "doubled" | "torn";
  readonly sentence: string;
}

/** Builds it. */
export function createSeenChain(nameOf: (node: number) => string, genesisHash: string): SeenChain {
  const hashes = new Map<number, { readonly hash: string; readonly node: number }>([
    [0, { hash: genesisHash, node: 0 }],
  ]);
  const [lives, heads] = [new Map<number, number>(), new Map<number, number>()];
  let height = 0;
  const lifeOf = (node: number): number => lives.get(node) ?? 0;

  function isOther(node: number, { number, hash }: Head): ChainFault | undefined {
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
    lifeOf,
    asking: (node) => ({ node, life: lifeOf(node), head: heads.get(node) ?? 0 }),
    sawHead({ node, life, head }, seen) {
      const isSameLife = life === lifeOf(node);
      if (isSameLife) {
        heads.set(node, Math.max(heads.get(node) ?? 0, seen.number));
      }
      if (isSameLife && seen.number < head) {
        heads.set(node, seen.number);
        return { column: "lost", sentence: `The head of ${nameOf(node)} went back from ${head} to ${seen.number}.` };
      }
      return isOther(node, seen);
    },
    sawBlock(node, block) {
      const fault = isOther(node, block);
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
    get height() {
      return height;
    },
    forget: (node) => {
      lives.set(node, lifeOf(node) + 1);
      heads.delete(node);
    },
  };
}
