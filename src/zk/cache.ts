/** Caches recent reads of the commitment tree and the nullifiers in memory, until a block changes them. */
import { createReadCache } from "../base/caches/read-cache.js";
import type { MerkleRoot, MerkleTree, PathSearch } from "./merkle-tree.js";
import type { Nullifiers, NullifierSearch } from "./nullifiers.js";

/** Limit on the cached paths, of about 5 kB each. */
const maxPaths = 4_000;
const maxNullifiers = 20_000;

/** Tree with a cache for the latest root and the paths to it. */
export interface CachedTree extends MerkleTree {
  /** Called when leaves were added; clears the cache. */
  invalidatePaths(): void;
}

/** Adds a cache for reads of the latest root. Reads of older roots always query the tree. */
export function cacheTree(tree: MerkleTree): CachedTree {
  const root = createReadCache<MerkleRoot>(() => Promise.resolve(tree.root()), 1);
  const paths = createReadCache<PathSearch>(
    (commitment) => Promise.resolve(tree.path(commitment, undefined)),
    maxPaths,
  );
  return {
    root: () => root.read(""),
    rootAfter: (blockNumber) => tree.rootAfter(blockNumber),
    path: (commitment, under) => (under === undefined ? paths.read(commitment) : tree.path(commitment, under)),
    invalidatePaths() {
      root.invalidate();
      paths.invalidate();
    },
  };
}

/** Nullifier reads with a cache for results, spent or not. */
export interface CachedNullifiers extends Nullifiers {
  /**
   * Called when a nullifier was spent, or, without a hash, when any may have been spent; removes the affected entries.
   */
  invalidate(hash?: string): void;
}

/** Adds a cache for reads of nullifiers. */
export function cacheNullifiers(nullifiers: Nullifiers): CachedNullifiers {
  const cache = createReadCache<NullifierSearch>((hash) => Promise.resolve(nullifiers.find(hash)), maxNullifiers);
  return { find: (hash) => cache.read(hash), invalidate: (hash) => cache.invalidate(hash) };
}
