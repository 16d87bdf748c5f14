/** The tree and the nullifiers as they were read lately, in memory, until a block changes them. */
import { createReadCache } from "../base/caches/read-cache.js";
import type { MerkleRoot, MerkleTree, PathSearch } from "./merkle-tree.js";
import type { Nullifiers, NullifierSearch } from "./nullifiers.js";

/** Most paths that are kept, of about 5 kB each. */
const keptPaths = 4_000;
const keptNullifiers = 20_000;

/** A tree whose newest root, and paths to it, are kept. */
export interface CachedTree extends MerkleTree {
  /** Tells that leaves were added. */
  grown(): void;
}

/** Puts a cache before the reads of the newest root; older roots are always read. */
export function cacheTree(tree: MerkleTree): CachedTree {
  const root = createReadCache<MerkleRoot>(() => Promise.resolve(tree.root()), 1);
  const paths = createReadCache<PathSearch>(
    (commitment) => Promise.resolve(tree.path(commitment, undefined)),
    keptPaths,
  );
  return {
    root: () => root.read(""),
    rootAfter: (blockNumber) => tree.rootAfter(blockNumber),
    path: (commitment, under) => (under === undefined ? paths.read(commitment) : tree.path(commitment, under)),
    grown() {
      root.forget();
      paths.forget();
    },
  };
}

/** Nullifiers that are kept, spent or not. */
export interface CachedNullifiers extends Nullifiers {
  /** Tells that one was spent, or that any may have been. */
  spent(hash?: string): void;
}

/** Puts a cache before the reads of nullifiers. */
export function cacheNullifiers(nullifiers: Nullifiers): CachedNullifiers {
  const cache = createReadCache<NullifierSearch>((hash) => Promise.resolve(nullifiers.find(hash)), keptNullifiers);
  return { find: (hash) => cache.read(hash), spent: (hash) => cache.forget(hash) };
}
