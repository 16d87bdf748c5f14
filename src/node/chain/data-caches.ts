/** State that blocks change, read through caches. The code that follows the blocks invalidates stale entries. */
import { targetAddress } from "../../base/program-address.js";
import type { BlockContent } from "../../chain/transactions/transaction.js";
import type { Database } from "../../db/queries/database.js";
import { createProgramCache } from "../../storage/programs/program-cache.js";
import type { Programs } from "../../storage/programs/programs.js";
import { createReadablePrograms, type ReadablePrograms } from "../../storage/stores/program-list-store.js";
import { createProgramStore } from "../../storage/stores/program-store.js";
import { cacheNullifiers, cacheTree } from "../../zk/cache.js";
import type { MerkleTree } from "../../zk/merkle-tree.js";
import { createNullifierStore, type Nullifiers } from "../../zk/nullifier-store.js";
import { createTreeStore } from "../../zk/tree-store.js";
import type { NodeCore } from "../lifecycle/core.js";
import { monitorNullifiers, monitorPrograms, monitorReadable, monitorTree } from "./corruption-monitoring.js";
import { type SnapshotSyncStatus, whenSynced } from "./snapshot-sync-status.js";

/** Read access to the state that blocks change. */
export interface NodeData {
  readonly programs: Programs;
  readonly tree: MerkleTree;
  readonly nullifiers: Nullifiers;
}

/** State that blocks change, with the read access to programs. */
export interface ChainData extends NodeData {
  readonly readable: ReadablePrograms;
  /** Invalidates all cached state, when the changes are not known. */
  readonly invalidateAll: () => void;
}

/** Creates the reads of the state, which are monitored for corruption and rejected while a snapshot sync is running. */
export function createChainData(
  { corruption, memory }: Pick<NodeCore, "corruption" | "memory">,
  { database: { read }, syncStatus }: { readonly database: Database; readonly syncStatus: SnapshotSyncStatus },
) {
  const programs = createProgramCache(monitorPrograms(createProgramStore(read), corruption), memory.programsBytes);
  const tree = cacheTree(monitorTree(createTreeStore(read), corruption));
  const nullifiers = cacheNullifiers(monitorNullifiers(createNullifierStore(read), corruption));
  const data: ChainData = {
    programs: whenSynced<Programs>(programs, syncStatus),
    tree: whenSynced<MerkleTree>(tree, syncStatus),
    nullifiers: whenSynced<Nullifiers>(nullifiers, syncStatus),
    readable: whenSynced(monitorReadable(createReadablePrograms(read), corruption), syncStatus),
    invalidateAll() {
      programs.invalidate();
      tree.invalidatePaths();
      nullifiers.invalidate();
    },
  };
  return {
    data,
    /** Invalidates the data that a block has changed. Call this once the block is in the database. */
    invalidateChanged({ header, transactions }: BlockContent): void {
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
  };
}

export type CachedData = ReturnType<typeof createChainData>;
