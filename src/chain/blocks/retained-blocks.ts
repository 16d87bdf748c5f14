/** Reads of blocks whose transactions are retained, and the errors for other blocks. */
import { CorruptionError } from "../../base/errors/corruption.js";
import { RpcError } from "../../rpc/errors.js";
import type { ChainStore, StoredBlock } from "./store.js";

/** Messages for blocks without transactions to read. */
export const noBlockYet = "There is no such block yet.";
export const blockZero = "Block 0 is the genesis: GET /genesis.";

/**
 * Creates a function that reads an existing block.
 *
 * @returns a function that rejects with RpcError PRUNED if the transactions were removed, and with CorruptionError if
 * the block is missing.
 */
export function createRetainedBlockReader(
  store: Pick<ChainStore, "block" | "lowestBlock">,
): (number: bigint) => Promise<StoredBlock> {
  return async (number) => {
    const stored = await store.block(number);
    if (stored === undefined) {
      checkRetained(number, await store.lowestBlock());
      throw new CorruptionError(`Block ${number} is missing in the database.`);
    }
    return stored;
  };
}

/** Throws RpcError PRUNED for a block whose transactions are not retained. */
export function checkRetained(number: bigint, lowest: bigint): void {
  if (number < lowest) {
    throw new RpcError(
      "PRUNED",
      `This node does not keep the transactions of block ${number}; the oldest complete block here is ${lowest}.`,
    );
  }
}
