/**
 * How much work a block may make. Work is counted in bytes that are touched, the same on every node and engine, so that
 * the bound of a block can be a rule of the chain: what a feature counts for an operation, it says where it is made. A
 * core does about 20 MiB of it in a second.
 */

/** What every transaction costs beside its bytes and its effects: signature, place in the block, sender; 0.8 ms. */
const transactionWork = 16 * 1024;

/**
 * Work of a block before its last transaction: with that, about a second of one core. A node makes no block with more,
 * and applies none.
 */
export const maxBlockCost = 16 * 1024 * 1024;

/** Work of a transaction. */
export function costOf(bodyBytes: number, effectsWork: number): number {
  return transactionWork + bodyBytes + effectsWork;
}
