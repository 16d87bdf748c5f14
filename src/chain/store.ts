/** The stored chain, as the rules of the chain and the services speak of it. */
import type { Block, Transaction } from "../../gen/gatehouse/chain/v1/block_pb.js";
import type { ReadBlock, ReadTransaction } from "./transaction.js";

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
}

/** A block from 1 on, as it was signed. */
export interface StoredBlock {
  /** 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly block: Block;
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
  /** The newest block; undefined while there is none. */
  head(): Promise<ChainHead | undefined>;
  /** The text of block 0; undefined while there is none. */
  genesisText(): Promise<string | undefined>;
  /** Makes block 0. Rejects when there is one. */
  insertGenesis(genesis: { readonly text: string; readonly hash: string; readonly timestampMs: number }): Promise<void>;
  block(number: bigint): Promise<StoredBlock | undefined>;
  /** How large a block from 1 on is, found by its number, or its hash: 0x and 64 lower-case hex digits. */
  weighBlock(by: BlockName): Promise<BlockWeight | undefined>;
}

/** What became of a transaction. */
export type TransactionFate =
  | { readonly status: "pending" }
  | { readonly status: "included"; readonly blockNumber: bigint }
  | { readonly status: "rejected"; readonly reason: string };

/** A transaction of the mempool. */
export interface PendingTransaction {
  readonly hash: string;
  readonly transaction: Transaction;
}

/** Whom transactions are relayed to. */
export type RelayTarget = "authority" | "peer";

/** How full the mempool is. */
export interface MempoolSize {
  readonly count: number;
  readonly bytes: number;
}

/** The mempool. */
export interface Mempool {
  pendingCount(): Promise<number>;
  mempoolSize(): Promise<MempoolSize>;
  /** Puts a transaction into the mempool; nothing when it is there already. */
  insertPending(transaction: ReadTransaction, bytes: Uint8Array, receivedMs: number): Promise<void>;
  /** The oldest pending transactions. */
  pending(limit: number): Promise<Transaction[]>;
  /** The same, a few at a time: no portion has more than so many bytes unless it is one transaction. */
  pendingPortions(limit: number, portionBytes: number): AsyncIterable<Transaction[]>;
  /** The oldest pending transactions that were not relayed to such a node since then, milliseconds since the epoch. */
  pendingToRelay(to: RelayTarget, relayedBeforeMs: number, limit: number): Promise<PendingTransaction[]>;
  /** Remembers that transactions were relayed. */
  markRelayed(to: RelayTarget, hashes: readonly string[], relayedMs: number): Promise<void>;
  /** Hashes of pending transactions that came before then, milliseconds since the epoch. */
  pendingSince(receivedBeforeMs: number, limit: number): Promise<string[]>;
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
export interface ChainStore<State = unknown> extends Blocks, Mempool, Senders {
  /** What became of a transaction; undefined when nothing is known of it. */
  fate(hash: string): Promise<TransactionFate | undefined>;
  /** Runs `work`: all of its changes of the chain and of the state are stored, or none when it throws. */
  write<T>(work: (changes: ChainChanges, state: State) => Promise<T>): Promise<T>;
  /** Writes as much as a large block does and takes it back. Rejects as that block would. */
  tryWrite(): Promise<void>;
}

/** Changes of which all are stored, or none. */
export interface ChainChanges {
  /** Runs `work`; when it throws, its changes of the chain and of the state are taken back, and those before stay. */
  attempt<T>(work: () => Promise<T>): Promise<T>;
  /** Which of these transactions are in a block. */
  included(hashes: readonly string[]): Promise<Set<string>>;
  /** Largest nonce in a block of each of these senders that has one. */
  lastNonces(senders: readonly string[]): Promise<Map<string, bigint>>;
  /** Puts transactions into a block, in their order, and takes them out of the mempool. */
  insertTransactions(transactions: readonly ReadTransaction[], blockNumber: bigint): Promise<void>;
  insertBlock(block: ReadBlock): Promise<void>;
  /** Takes a transaction out of the mempool and remembers why. */
  reject(hash: string, reason: string, rejectedMs: number): Promise<void>;
}
