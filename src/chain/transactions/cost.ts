/**
 * Execution cost of blocks, similar to gas. A transaction costs a fixed amount, the bytes of its body, and the bytes of
 * state that it touches. The cost is equal on every node and database engine, so its limit can be a rule of the chain.
 * Each feature defines the cost of its own operations. One core executes about 20 MiB of cost in a second.
 */

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
