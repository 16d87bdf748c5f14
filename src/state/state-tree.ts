/** Interfaces of the state tree: changes by blocks, and reads. */
import type { LeafChange, LoadPages } from "../tree/change.js";

/** Number of latest blocks whose state can be proved. */
export const provenBlocks = 256;

/** Changes to the tree, inside the transaction of a block. */
export interface StateTreeChanges {
  /**
   * Applies all changes of a block and returns the new root.
   *
   * @param changes at most one change for each key.
   */
  change(blockNumber: bigint, changes: readonly LeafChange[]): Promise<Uint8Array>;
}

/** Reads of the tree. */
export interface StateTree {
  /** Returns a loader of pages as of one of the last {@link provenBlocks} blocks. */
  pagesAfter(blockNumber: bigint): LoadPages;
}
