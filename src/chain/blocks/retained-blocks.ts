/** Blocks whose transactions are kept, and what is said of those whose are not. */
import { CorruptionError } from "../../base/errors/corruption.js";
import { RpcError } from "../../rpc/errors.js";
import type { ChainStore, StoredBlock } from "./store.js";

export const noBlockYet = "There is no such block yet.";
export const blockZero = "Block 0 is the genesis: GET /genesis.";

/**
 * Builds the read of a block that is there.
 *
 * @returns rejects with Failure PRUNED where its transactions are not kept, with DamageError where it is lost.
 */
export function createRetainedBlocks(
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

/** Throws Failure PRUNED for a block below the lowest one whose transactions are kept. */
export function checkRetained(number: bigint, lowest: bigint): void {
  if (number < lowest) {
    throw new RpcError(
      "PRUNED",
      `The transactions of block ${number} are not kept here; the oldest block that this node keeps whole is ${lowest}.`,
    );
  }
}
