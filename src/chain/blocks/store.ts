/** Interfaces of the stored chain, independent of the database. */
import type { Block, BlockHeader, Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type { Listings } from "./listings.js";
import type { VerifiedBlock, VerifiedTransaction } from "../transactions/transaction.js";

/** Latest block. */
export interface ChainHead {
  readonly number: bigint;
  /** Block hash: 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly timestampMs: bigint;
  /** Hash of block 0. */
  readonly genesisHash: string;
  /** Encoded header and signature; both empty for block 0. */
  readonly header: Uint8Array;
  readonly signature: Uint8Array;
  /** Number of the oldest block whose transactions are retained; above `number` if none are. */
  readonly lowestBlock: bigint;
}

/** Signed block with its transactions; never block 0. */
export interface StoredBlock {
  /** Block hash: 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly header: BlockHeader;
  /** Hashes of the transactions, in order. */
  readonly transactionHashes: readonly string[];
  readonly block: Block;
}

/** Signed header; never that of block 0. */
export interface StoredHeader {
  /** Hash of the block: 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly header: Uint8Array;
  readonly signature: Uint8Array;
}

/** Identifier of a block: its number, or its hash of 0x and 64 lower-case hex digits. */
export type BlockId = { readonly number: bigint } | { readonly hash: string };

/** Size of a block, known before its transactions are read. */
export interface BlockSize {
  readonly number: bigint;
  readonly transactionCount: number;
  /** Bytes of the header, and of the bodies and signatures of all transactions. */
  readonly bytes: number;
}

/** Stored blocks and their transactions. */
export interface Blocks {
  /** Returns the latest block; undefined if there is none, and during a snapshot sync. */
  head(): Promise<ChainHead | undefined>;
  /** Returns the genesis text of block 0; undefined if there is none. */
  genesisText(): Promise<string | undefined>;
  /** Inserts block 0. Rejects if there is one. */
  insertGenesis(genesis: { readonly text: string; readonly hash: string; readonly timestampMs: number }): Promise<void>;
  /** Returns a block; undefined if it does not exist or if its transactions are not retained. */
  block(number: bigint): Promise<StoredBlock | undefined>;
  /** Returns the number of the oldest block whose transactions are retained. */
  lowestBlock(): Promise<bigint>;
  /** Returns a header; undefined for block 0, and if the block does not exist. */
  header(number: bigint): Promise<StoredHeader | undefined>;
  /** Returns the size of a block; undefined if it does not exist, and for block 0. */
  blockSize(id: BlockId): Promise<BlockSize | undefined>;
  /** Returns the number of the block that includes a transaction; undefined if there is none. */
  blockOf(transactionHash: string): Promise<bigint | undefined>;
  /** Returns a transaction that is in a block; undefined if there is none. */
  transaction(hash: string): Promise<Transaction | undefined>;
  /** Returns the hashes of those transactions that are in a block. */
  included(hashes: readonly string[]): Promise<Set<string>>;
}

/** Status of a transaction. */
export type TransactionStatusInfo =
  | { readonly status: "pending" }
  | { readonly status: "included"; readonly blockNumber: bigint }
  | { readonly status: "rejected"; readonly reason: string };

/** Public summary of a pending transaction. */
export interface PendingSummary {
  /** Transaction hash: 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly sender: string;
  readonly nonce: bigint;
  /** Timestamp that the sender set. */
  readonly timestampMs: bigint;
}

/** Pending transaction without its bytes. */
export interface PendingEntry extends PendingSummary {
  /** Encoded size in bytes, including the signature. */
  readonly sizeBytes: number;
  /** IPv4 address or IPv6 /64 prefix of the source; undefined for transactions of this node. */
  readonly source: string | undefined;
  /** Time of arrival, in milliseconds since the epoch. */
  readonly receivedMs: number;
  readonly expiresMs: number;
  /** Nonce of the preceding transaction of the same sender, as stated by the relaying peer; undefined if not stated. */
  readonly afterNonce: bigint | undefined;
}

/** Transaction of the mempool. */
export interface PendingTransaction {
  readonly hash: string;
  readonly transaction: Transaction;
}

/** Transaction to relay. */
export interface RelayedTransaction extends PendingTransaction {
  /** Same as `afterNonce` of {@link PendingEntry}, and takes into account what is pending on this node. */
  readonly afterNonce: bigint | undefined;
}

/** Kind of node that transactions are relayed to. */
export type RelayTarget = "authority" | "peer";

/** Size of the mempool, or of one source's or sender's usage. */
export interface MempoolSize {
  readonly count: number;
  readonly bytes: number;
}

/** Record of a transaction that can never be included. */
export interface Rejection {
  readonly hash: string;
  readonly reason: string;
  readonly rejectedMs: number;
  /** Expiry of the transaction; the rejection is retained at least until then. */
  readonly expiresMs: number;
}

/** Transactions that leave the mempool. */
export interface Removals {
  /** Hashes of transactions that are in a block. */
  readonly included: readonly string[];
  readonly rejected: readonly Rejection[];
}

/** Reads of pending transactions and of transaction status. */
export interface MempoolView {
  /** Returns the status of a transaction; undefined if it is unknown. */
  transactionStatus(hash: string): Promise<TransactionStatusInfo | undefined>;
  /** Returns the oldest pending transactions. */
  oldestPending(limit: number): Promise<readonly PendingSummary[]>;
  /** Returns a pending transaction; undefined if there is none with this hash. */
  pending(hash: string): Promise<Transaction | undefined>;
}

/** Persistent mempool. */
export interface MempoolStore {
  pendingCount(): Promise<number>;
  oldestPending(limit: number): Promise<PendingEntry[]>;
  isPending(hash: string): Promise<boolean>;
  /** Returns the reason of a rejection; undefined if there was none or its record was deleted. */
  rejectionOf(hash: string): Promise<string | undefined>;
  /** Inserts a pending transaction; does nothing if it exists. */
  insertPending(entry: PendingEntry, bytes: Uint8Array): Promise<void>;
  /**
   * Returns pending transactions by hash. The value is undefined if the stored bytes are corrupt; missing transactions
   * have no entry.
   */
  readPending(hashes: readonly string[]): Promise<Map<string, Transaction | undefined>>;
  /** Removes transactions and records rejections, atomically. */
  remove(removals: Removals): Promise<void>;
  /** Deletes rejections of transactions that expired before a time, and the oldest above the limit. */
  deleteOldRejections(expiredBeforeMs: number): Promise<void>;
  /**
   * Writes a row as large as that of a large transaction, then rolls back. Rejects with the error that such a
   * transaction would cause.
   */
  tryWrite(): Promise<void>;
}

/** Senders of transactions in blocks. */
export interface Senders {
  /** Returns the highest nonce of the sender in a block; undefined if there is none. */
  lastNonce(sender: string): Promise<bigint | undefined>;
}

/**
 * Stored chain.
 *
 * @typeParam State state that transactions change, besides the chain itself.
 */
export interface ChainStore<State = unknown> extends Blocks, Listings, MempoolView, Senders {
  readonly mempool: MempoolStore;
  /** Returns the number of pending transactions. Rejects unless both parts of the database respond. */
  pendingCount(): Promise<number>;
  /**
   * Runs `work` in one transaction: all changes of chain and state are stored, or none if it throws.
   *
   * @param latest expected latest block; undefined skips the check.
   * @throws FencedError if the latest block differs, or if this node may not write.
   */
  write<T>(latest: ChainHead | undefined, work: (changes: ChainChanges, state: State) => Promise<T>): Promise<T>;
  /**
   * Writes a row as large as that of a large block, then rolls back. Rejects with the error that such a block would
   * cause.
   */
  tryWrite(): Promise<void>;
}

/** Changes that are stored atomically. */
export interface ChainChanges {
  /** Returns true if the transaction is still usable. Some engines abort a transaction after a failed query. */
  isUsable(): Promise<boolean>;
  /** Returns the hashes of those transactions that are in a block. */
  included(hashes: readonly string[]): Promise<Set<string>>;
  /** Returns the highest nonce in a block of each given sender that has one. */
  lastNonces(senders: readonly string[]): Promise<Map<string, bigint>>;
  /** Inserts the transactions of a block, in order. */
  insertTransactions(transactions: readonly VerifiedTransaction[], blockNumber: bigint): Promise<void>;
  insertBlock(block: VerifiedBlock): Promise<void>;
}
