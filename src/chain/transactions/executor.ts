/**
 * Interface between the chain and the features, such as storage programs. The chain decides which block includes a
 * transaction, and in which order. The features execute it.
 */
import type { BlockRoots, ChainRules, VerifiedTransaction } from "./transaction.js";

/** Position of a block in the chain, known before its hash. */
export interface BlockPosition {
  readonly number: bigint;
  /** Timestamp in the block header. */
  readonly timeMs: number;
}

/**
 * Executes the transactions of all features.
 *
 * @typeParam State state that transactions read and change.
 */
export interface Executor<State> extends Pick<ChainRules, "checkOperation"> {
  /**
   * Checks a transaction before it enters the mempool. A transaction that passes may still be rejected during block
   * production.
   *
   * @param block earliest block that can include the transaction.
   * @throws RpcError if the transaction would be rejected now.
   */
  check(transaction: VerifiedTransaction, block: BlockPosition): Promise<void>;
  /** Starts the execution of a block. Its changes are stored atomically with the block. */
  start(block: BlockPosition, state: State): BlockExecutor;
}

/** Execution of one block, inside its database transaction. */
export interface BlockExecutor {
  /** Prefetches the state that upcoming transactions read. Affects speed only, never results. */
  prefetch(transactions: readonly VerifiedTransaction[]): Promise<void>;
  /**
   * Executes a transaction. Returns its cost in bytes touched, which is equal on every engine. If execution fails,
   * rolls back the changes of the transaction and throws an RpcError.
   */
  apply(transaction: VerifiedTransaction): Promise<number>;
  /**
   * Completes the block and returns its roots.
   *
   * @param transactions included transactions, all of them executed.
   */
  finish(transactions: readonly VerifiedTransaction[]): Promise<BlockRoots>;
}

// Execution cost of blocks, similar to gas. A transaction costs a fixed amount, the bytes of its body, and the bytes of
// state that it touches. The cost is equal on every node and database engine, so its limit can be a rule of the chain.
// Each feature defines the cost of its own operations. One core executes about 20 MiB of cost in a second.

/** Fixed cost of a transaction, in bytes: signature, slot in the block and sender. Takes about 0.8 ms. */
const transactionCost = 16 * 1024;

/**
 * Limit in bytes on the cost of a block, without its last transaction. Including that one, a block takes about 1 s of
 * one core. The node neither builds nor applies a block above this limit.
 */
export const maxBlockCost = 16 * 1024 * 1024;

/** Returns the cost of a transaction in bytes. */
export function costOf(bodyBytes: number, executionCost: number): number {
  return transactionCost + bodyBytes + executionCost;
}
