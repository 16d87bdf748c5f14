/** The tree of the state: what blocks change in it, and what is read of it. */
import type { LeafChange, LoadPages } from "../tree/change.js";

/** Proofs are made under the roots after so many blocks, the newest among them. */
export const provenBlocks = 256;

/** Changes of the tree, in the transaction of a block. */
export interface StateTreeChanges {
  /**
   * Makes all changes of a block, and gives the root after it.
   *
   * @param changes at most one for each key.
   */
  change(blockNumber: bigint, changes: readonly LeafChange[]): Promise<Uint8Array>;
}

/** Reads of the tree. */
export interface StateTree {
  /** The pages as they were after one of the last {@link provenBlocks} blocks. */
  pagesAfter(blockNumber: bigint): LoadPages;
}
