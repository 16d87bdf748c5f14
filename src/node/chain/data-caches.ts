/** What blocks change, as it is read, with caches before the database; whoever follows the blocks says what is old. */
import type { BlockContent } from "../../chain/transactions/transaction.js";
import { createProgramCache } from "../../storage/programs/program-cache.js";
import type { Programs } from "../../storage/programs/programs.js";
import { targetAddress } from "../../base/program-address.js";
import { cacheNullifiers, cacheTree } from "../../zk/cache.js";
import type { MerkleTree } from "../../zk/merkle-tree.js";
import type { Nullifiers } from "../../zk/nullifiers.js";

/** What blocks change, as it is read. */
export interface NodeData {
  readonly programs: Programs;
  readonly tree: MerkleTree;
  readonly nullifiers: Nullifiers;
}

/** The same, with caches. */
export interface CachedData {
  readonly data: NodeData;
  /** Forgets what a block has changed, once it is in the database. */
  forgetChanged(block: BlockContent): void;
  /** Forgets everything: nobody knows what has changed. */
  forgetAll(): void;
}

/** @param programsBytes of programs that are kept. */
export function createCachedData(stored: NodeData, programsBytes: number): CachedData {
  const programs = createProgramCache(stored.programs, programsBytes);
  const tree = cacheTree(stored.tree);
  const nullifiers = cacheNullifiers(stored.nullifiers);
  return {
    data: { programs, tree, nullifiers },
    forgetChanged({ header, transactions }) {
      for (const { body } of transactions) {
        const { operation } = body;
        if (operation.case === "storage") {
          const address = targetAddress(operation.value, body);
          if (address !== undefined) {
            programs.invalidate(address);
          }
        } else if (operation.case === "zk" && operation.value.operation.case === "spendNullifier") {
          nullifiers.spent(operation.value.operation.value.nullifierHash);
        }
      }
      if (header.commitmentRoot !== undefined) {
        tree.grown();
      }
    },
    forgetAll() {
      programs.invalidate();
      tree.grown();
      nullifiers.spent();
    },
  };
}
