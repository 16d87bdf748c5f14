/** Status lookup of a transaction across mempool, blocks and rejections. */
import type { TransactionStatusInfo } from "../blocks/store.js";

/** Sources of the status of a transaction. */
export interface StatusSources {
  isPending(hash: string): boolean | Promise<boolean>;
  blockOf(hash: string): Promise<bigint | undefined>;
  rejectionOf(hash: string): string | undefined | Promise<string | undefined>;
}

/**
 * Finds the status of a transaction. Checks the mempool before the blocks, so that none is missed while it moves. A
 * transaction enters a block before it leaves the mempool, so the block takes precedence.
 */
export async function findTransactionStatus(
  hash: string,
  sources: StatusSources,
): Promise<TransactionStatusInfo | undefined> {
  const isPending = await sources.isPending(hash);
  const blockNumber = await sources.blockOf(hash);
  if (blockNumber !== undefined) {
    return { status: "included", blockNumber };
  }
  if (isPending) {
    return { status: "pending" };
  }
  const reason = await sources.rejectionOf(hash);
  return reason === undefined ? undefined : { status: "rejected", reason };
}
