/** State that blocks change, read through caches. The code that follows the blocks invalidates stale entries. */
import type { BlockContent } from "../../chain/transactions/transaction.js";
import { createProgramCache } from "../../storage/programs/program-cache.js";
import type { Programs } from "../../storage/programs/programs.js";
import { targetAddress } from "../../base/program-address.js";
import { cacheNullifiers, cacheTree } from "../../zk/cache.js";
import type { MerkleTree } from "../../zk/merkle-tree.js";
import type { Nullifiers } from "../../zk/nullifier-store.js";

/** Read access to the state that blocks change. */
export interface NodeData {
  readonly programs: Programs;
  readonly tree: MerkleTree;
  readonly nullifiers: Nullifiers;
}

/** Read access through caches, and their invalidation. */
export interface CachedData {
  readonly data: NodeData;
  /** Invalidates the data that a block has changed. Call this once the block is in the database. */
  invalidateChanged(block: BlockContent): void;
  /** Invalidates all data, when the changes are not known. */
  invalidateAll(): void;
}

/**
 * Creates the caches.
 *
 * @param programsBytes limit on cached programs in bytes.
 */
export function createCachedData(stored: NodeData, programsBytes: number): CachedData {
  const programs = createProgramCache(stored.programs, programsBytes);
  const tree = cacheTree(stored.tree);
  const nullifiers = cacheNullifiers(stored.nullifiers);
  return {
    data: { programs, tree, nullifiers },
    invalidateChanged({ header, transactions }) {
      for (const { body } of transactions) {
        const { operation } = body;
        if (operation.case === "storage") {
          const address = targetAddress(operation.value, body);
          if (address !== undefined) {
            programs.invalidate(address);
          }
        } else if (operation.case === "zk" && operation.value.operation.case === "spendNullifier") {
          nullifiers.invalidate(operation.value.operation.value.nullifierHash);
        }
      }
      if (header.commitmentRoot !== undefined) {
        tree.invalidatePaths();
      }
    },
    invalidateAll() {
      programs.invalidate();
      tree.invalidatePaths();
      nullifiers.invalidate();
    },
  };
}
