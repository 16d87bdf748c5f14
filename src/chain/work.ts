/**
 * How much work a block may make. Work is counted in bytes that are touched, the same on every node and engine, so that
 * the bound of a block can be a rule of the chain: what a feature counts for an operation, it says where it is made. A
 * core does about 20 MiB of it in a second.
 */

/** What every transaction costs beside its bytes and its effects: its signature, its place in the block, its sender. */
const transactionWork = 1_024;

/** Work of a block that this node makes: about a second of one core at the most. */
export const maxMadeWork = 16 * 1024 * 1024;

/**
 * Work of any block before its last transaction: what an external consensus may put together. Bodies alone, which a
 * block has 4 MiB of, stay far below it.
 */
export const maxBlockWork = 4 * maxMadeWork;

/** Work of a transaction. */
export function workOf(bodyBytes: number, effectsWork: number): number {
  return transactionWork + bodyBytes + effectsWork;
}
