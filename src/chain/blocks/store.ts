/** Store of the chain, which combines the stores of this folder. */
import type { BlockChanges, BlockStore } from "./block-store.js";
import type { Listings } from "./listing-store.js";
import type { MempoolStore } from "./mempool-store.js";
import type { ChainHead, GenesisBlock, MempoolView } from "./store-types.js";

/**
 * Stored chain.
 *
 * @typeParam State state that transactions change, besides the chain itself.
 */
export interface ChainStore<State = unknown> extends BlockStore, Listings, MempoolView {
  readonly mempool: MempoolStore;
  /** Inserts block 0. Rejects if there is one. */
  insertGenesis(genesis: GenesisBlock): Promise<void>;
  /** Returns the highest nonce of the sender in a block; undefined if there is none. */
  lastNonce(sender: string): Promise<bigint | undefined>;
  /** Returns the number of pending transactions. Rejects unless both parts of the database respond. */
  pendingCount(): Promise<number>;
  /**
   * Runs `work` in one transaction: all changes of chain and state are stored, or none if it throws.
   *
   * @param latest expected latest block; undefined skips the check.
   * @throws FencedError if the latest block differs, or if this node may not write.
   */
  write<T>(latest: ChainHead | undefined, work: (changes: BlockChanges, state: State) => Promise<T>): Promise<T>;
  /**
   * Writes a row as large as that of a large block, then rolls back. Rejects with the error that such a block would
   * cause.
   */
  tryWrite(): Promise<void>;
}
