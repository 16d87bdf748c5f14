/** Where a nullifier was spent. */
export interface NullifierUse {
  readonly blockNumber: bigint;
  /** 0x and 64 lower-case hex digits. */
  readonly transactionHash: string;
}

/** What a look for a nullifier gives. */
export interface NullifierSearch {
  readonly hash: string;
  /** Where it was spent; undefined when it was not. */
  readonly use: NullifierUse | undefined;
}

export interface Nullifiers {
  find(hash: string): NullifierSearch | Promise<NullifierSearch>;
}

/** Spent nullifiers as blocks see them and change them. */
export interface NullifierChanges extends Nullifiers {
  /** Reads ahead what will be looked for. */
  expect(hashes: readonly string[]): Promise<void>;
  insert(hash: string, use: NullifierUse): void;
}
