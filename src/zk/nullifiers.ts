/** Transaction that spent a nullifier, and its block. */
export interface NullifierUse {
  readonly blockNumber: bigint;
  /** Hash of the transaction: 0x and 64 lowercase hex digits. */
  readonly transactionHash: string;
}

/** Result of a search for a nullifier. */
export interface NullifierSearch {
  readonly hash: string;
  /** Transaction that spent the nullifier; undefined if it is not spent. */
  readonly use: NullifierUse | undefined;
}

export interface Nullifiers {
  find(hash: string): NullifierSearch | Promise<NullifierSearch>;
}

/** Spent nullifiers as seen and changed by blocks. */
export interface NullifierChanges extends Nullifiers {
  /** Prefetches these nullifiers. */
  prefetch(hashes: readonly string[]): Promise<void>;
  insert(hash: string, use: NullifierUse): void;
}
