/** The stored chain, as the rules of the chain and the services speak of it. */
import type { Block, BlockHeader, Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type { Listings } from "./listings.js";
import type { VerifiedBlock, ReadTransaction } from "../transactions/transaction.js";

/** The newest block. */
export interface ChainHead {
  readonly number: bigint;
  /** 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly timestampMs: bigint;
  /** Hash of block 0. */
  readonly genesisHash: string;
  /** As its proposer signed it; both empty for block 0. */
  readonly header: Uint8Array;
  readonly signature: Uint8Array;
  /** The oldest block whose transactions are kept; above this one where none are. */
  readonly lowestBlock: bigint;
}

/** A block from 1 on, as it was signed. */
export interface StoredBlock {
  /** 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly header: BlockHeader;
  /** Of its transactions, in their order. */
  readonly transactionHashes: readonly string[];
  readonly block: Block;
}

/** The header of a block from 1 on, as it was signed. */
export interface StoredHeader {
  /** Of the block: 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly header: Uint8Array;
  readonly signature: Uint8Array;
}

/** Names a block. */
export type BlockName = { readonly number: bigint } | { readonly hash: string };

/** What is known of a block before its transactions are read. */
export interface BlockWeight {
  readonly number: bigint;
  readonly transactionCount: number;
  /** Of its header, and of the bodies and signatures of its transactions. */
  readonly bytes: number;
}

/** Blocks, and the transactions in them. */
export interface Blocks {
  /** The newest block; undefined while there is none, and while a snapshot is taken in. */
  head(): Promise<ChainHead | undefined>;
  /** The text of block 0; undefined while there is none. */
  genesisText(): Promise<string | undefined>;
  /** Makes block 0. Rejects when there is one. */
  insertGenesis(genesis: { readonly text: string; readonly hash: string; readonly timestampMs: number }): Promise<void>;
  /** Undefined also where its transactions are not kept. */
  block(number: bigint): Promise<StoredBlock | undefined>;
  /** Number of the oldest block whose transactions are kept. */
  lowestBlock(): Promise<bigint>;
  header(number: bigint): Promise<StoredHeader | undefined>;
  /** How large a block from 1 on is, found by its number, or its hash: 0x and 64 lower-case hex digits. */
  weighBlock(by: BlockName): Promise<BlockWeight | undefined>;
  /** The block that a transaction is in. */
  blockOf(transactionHash: string): Promise<bigint | undefined>;
  /** A transaction that is in a block. */
  transaction(hash: string): Promise<Transaction | undefined>;
  /** Which of these transactions are in a block. */
  included(hashes: readonly string[]): Promise<Set<string>>;
}

/** What became of a transaction. */
export type TransactionStatusInfo =
  | { readonly status: "pending" }
  | { readonly status: "included"; readonly blockNumber: bigint }
  | { readonly status: "rejected"; readonly reason: string };

/** What is told of a pending transaction. */
export interface PendingSummary {
  /** 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly sender: string;
  readonly nonce: bigint;
  /** As its sender wrote it. */
  readonly timestampMs: bigint;
}

/** A pending transaction without its bytes. */
export interface PendingEntry extends PendingSummary {
  /** Of it and its signature, encoded. */
  readonly sizeBytes: number;
  /** The address, or the /64 of IPv6, that it came from; undefined when this node made it itself. */
  readonly origin: string | undefined;
  readonly receivedMs: number;
  readonly expiresMs: number;
  /** It comes after its sender's transaction with this nonce, says who relayed it; undefined where nobody does. */
  readonly afterNonce: bigint | undefined;
}

/** A transaction of the mempool. */
export interface PendingTransaction {
  readonly hash: string;
  readonly transaction: Transaction;
}

/** A transaction that is to be relayed. */
export interface RelayedTransaction extends PendingTransaction {
  /** As of a {@link PendingEntry}, of what waits here too. */
  readonly afterNonce: bigint | undefined;
}

/** Whom transactions are relayed to. */
export type RelayTarget = "authority" | "peer";

/** How full the mempool is, or how much of it somebody has. */
export interface MempoolSize {
  readonly count: number;
  readonly bytes: number;
}

/** Why a transaction gets into no block. */
export interface Rejection {
  readonly hash: string;
  readonly reason: string;
  readonly rejectedMs: number;
  /** It is remembered until then, at least. */
  readonly expiresMs: number;
}

/** What leaves the mempool. */
export interface Settled {
  /** Hashes of what is in a block. */
  readonly included: readonly string[];
  readonly rejected: readonly Rejection[];
}

/** What is told of the mempool, and of what became of transactions. */
export interface MempoolView {
  /** What became of a transaction; undefined when nothing is known of it. */
  fate(hash: string): Promise<TransactionStatusInfo | undefined>;
  /** The oldest pending transactions. */
  oldestPending(limit: number): Promise<readonly PendingSummary[]>;
  /** A transaction that is pending. */
  pending(hash: string): Promise<Transaction | undefined>;
}

/** The stored mempool. */
export interface MempoolStore {
  pendingCount(): Promise<number>;
  oldestPending(limit: number): Promise<PendingEntry[]>;
  isPending(hash: string): Promise<boolean>;
  /** Why a transaction was turned away; undefined when it was not, or that is forgotten. */
  rejectionOf(hash: string): Promise<string | undefined>;
  /** Stores a pending transaction; nothing when it is there already. */
  insertPending(entry: PendingEntry, bytes: Uint8Array): Promise<void>;
  /** Pending transactions by their hashes: undefined for one that is not what it was, none for one that is not there. */
  readPending(hashes: readonly string[]): Promise<Map<string, Transaction | undefined>>;
  /** Takes transactions out, and remembers why those that are in no block are not; all of that, or nothing. */
  settle(settled: Settled): Promise<void>;
  /** Forgets rejections of what expired before then, and the oldest of too many. */
  forgetRejected(expiredBeforeMs: number): Promise<void>;
  /** Writes as much as a large transaction has and takes it back. Rejects as that transaction would. */
  tryWrite(): Promise<void>;
}

/** Who sent transactions that are in blocks. */
export interface Senders {
  /** Largest nonce of the sender in a block; undefined when there is none. */
  lastNonce(sender: string): Promise<bigint | undefined>;
}

/**
 * The stored chain.
 *
 * @typeParam State what transactions change, beside the chain itself.
 */
export interface ChainStore<State = unknown> extends Blocks, Listings, MempoolView, Senders {
  readonly mempool: MempoolStore;
  /** Counts what is pending. Rejects when either part of the database does not answer. */
  pendingCount(): Promise<number>;
  /**
   * Runs `work`: all of its changes of the chain and of the state are stored, or none when it throws.
   *
   * @param newest the newest block, as far as whoever writes knows; undefined for one who does not say.
   * @throws FencedError when it is not, or this node may not write at this moment.
   */
  write<T>(newest: ChainHead | undefined, work: (changes: ChainChanges, state: State) => Promise<T>): Promise<T>;
  /** Writes as much as a large block does and takes it back. Rejects as that block would. */
  tryWrite(): Promise<void>;
}

/** Changes of which all are stored, or none. */
export interface ChainChanges {
  /** Whether anything more can be stored: an engine may end a transaction with a query that failed. */
  canGoOn(): Promise<boolean>;
  /** Which of these transactions are in a block. */
  included(hashes: readonly string[]): Promise<Set<string>>;
  /** Largest nonce in a block of each of these senders that has one. */
  lastNonces(senders: readonly string[]): Promise<Map<string, bigint>>;
  /** Puts transactions into a block, in their order. */
  insertTransactions(transactions: readonly ReadTransaction[], blockNumber: bigint): Promise<void>;
  insertBlock(block: VerifiedBlock): Promise<void>;
}
