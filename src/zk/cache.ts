/** Caches recent reads of the commitment tree and the nullifiers in memory, until a block changes them. */
import { makeImmutable } from "../base/caches/immutable.js";
import { createLruCache } from "../base/caches/lru-cache.js";
import { AdmissionPolicy } from "../base/caches/read-cache.js";
import type { MerkleRoot, MerkleTree, PathSearch } from "./merkle-tree.js";
import type { Nullifiers, NullifierSearch } from "./nullifier-store.js";

/** Limit on the cached paths, of about 5 kB each. */
const maxPaths = 4_000;
const maxNullifiers = 20_000;

/** Adds a cache for reads of the latest root. Reads of older roots always query the tree. */
export function cacheTree(tree: MerkleTree) {
  const root = createReadCache<MerkleRoot>(async () => await tree.root(), 1);
  const paths = createReadCache<PathSearch>(async (commitment) => await tree.path(commitment, undefined), maxPaths);
  return {
    root: () => root.read(""),
    rootAfter: (blockNumber: bigint) => tree.rootAfter(blockNumber),
    path: (commitment: string, under: string | undefined) =>
      under === undefined ? paths.read(commitment) : tree.path(commitment, under),
    /** Called when leaves were added; clears the cache. */
    invalidatePaths(): void {
      root.invalidate();
      paths.invalidate();
    },
  };
}

/** Adds a cache for reads of nullifiers, spent or not. */
export function cacheNullifiers(nullifiers: Nullifiers) {
  const cache = createReadCache<NullifierSearch>(async (hash) => await nullifiers.find(hash), maxNullifiers);
  return {
    find: (hash: string) => cache.read(hash),
    /**
     * Called when a nullifier was spent, or, without a hash, when any may have been spent; removes the affected
     * entries.
     */
    invalidate: (hash?: string) => cache.invalidate(hash),
  };
}

/** Creates a cache of up to `max` values. Values are stored from the second read on, and are made immutable. */
function createReadCache<Value extends object>(find: (key: string) => Promise<Value>, max: number) {
  const cache = createLruCache<Value>(max);
  const admission = new AdmissionPolicy();
  return {
    /** Returns the cached value, or a promise of the value that is read from the database. */
    read: (key: string): Value | Promise<Value> =>
      cache.get(key) ??
      admission.find(
        key,
        () => find(key),
        (value) => {
          cache.set(key, makeImmutable(value));
          return value;
        },
      ),
    /** Removes one key, or every key if none is given. Call it once the change is in the database. */
    invalidate(key?: string) {
      admission.changed();
      if (key === undefined) {
        cache.clear();
      } else {
        cache.delete(key);
      }
    },
  };
}
