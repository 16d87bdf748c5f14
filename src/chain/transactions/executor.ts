/** What transactions do, as the chain sees it: the features say what it is, and the chain says when. */
import type { BlockRoots, ChainRules, ReadTransaction } from "./transaction.js";

/** A block before it has a hash. */
export interface BlockMoment {
  readonly number: bigint;
  /** As its header says it. */
  readonly timeMs: number;
}

/**
 * What transactions do, feature by feature.
 *
 * @typeParam State what they do it to.
 */
export interface Executor<State> extends Pick<ChainRules, "checkOperation"> {
  /**
   * Looks at a transaction before it gets into the mempool. What passes may still be rejected when its block is made.
   *
   * @param block the one that it can get into at the earliest.
   * @throws Failure for a transaction that would be rejected now.
   */
  check(transaction: ReadTransaction, block: BlockMoment): Promise<void>;
  /** Begins a block, whose effects are stored with it, or not at all. */
  begin(block: BlockMoment, state: State): BlockExecutor;
}

/** The effects of one block, made inside its database transaction. */
export interface BlockExecutor {
  /** Reads ahead what transactions that come will look at: nothing that they do is another for it. */
  expect(transactions: readonly ReadTransaction[]): Promise<void>;
  /**
   * Makes the effects of a transaction, and gives the work that they were: bytes touched, the same on every engine.
   * Throws a Failure when they cannot be made; then none are left.
   */
  apply(transaction: ReadTransaction): Promise<number>;
  /**
   * Ends the block.
   *
   * @param transactions those that are in it, whose effects are made.
   */
  finish(transactions: readonly ReadTransaction[]): Promise<BlockRoots>;
}
