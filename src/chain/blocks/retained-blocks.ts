/** Reads of blocks whose transactions are retained, and the errors for other blocks. */
import { CorruptionError } from "../../base/errors/corruption.js";
import { RpcError } from "../../rpc/errors.js";
import type { ChainStore } from "./store.js";
import type { StoredBlock } from "./store-types.js";

/**
 * Creates the error of requests that need the latest block, on a node without blocks.
 *
 * @param hasGenesis true if the node has a genesis: its state is then missing because a snapshot sync is running.
 * @param missing noun of the error message for a node without a genesis.
 */
export function noLatestBlock(hasGenesis: boolean, missing: "chain" | "genesis block" = "chain"): RpcError {
  return new RpcError(
    "STATE_NOT_READY",
    hasGenesis
      ? "The node has no state yet: it is syncing from a snapshot."
      : `The node has no ${missing} yet; start it with --genesis FILE.`,
  );
}

/**
 * Reads an existing block. Throws RpcError PRUNED if its transactions were removed, and CorruptionError if the block is
 * missing.
 */
export async function readRetained(
  store: Pick<ChainStore, "block" | "lowestBlock">,
  number: bigint,
): Promise<StoredBlock> {
  const stored = await store.block(number);
  if (stored === undefined) {
    checkRetained(number, await store.lowestBlock());
    throw new CorruptionError(`Block ${number} is missing in the database.`);
  }
  return stored;
}

/** Throws RpcError PRUNED for a block whose transactions are not retained. */
export function checkRetained(number: bigint, lowest: bigint): void {
  if (number < lowest) {
    throw new RpcError(
      "PRUNED",
      `This node does not store the transactions of block ${number}; the oldest complete block here is ${lowest}.`,
    );
  }
}
