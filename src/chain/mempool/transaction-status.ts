/** Lookup of the status of a transaction in the mempool, the blocks and the rejections. */
import type { TransactionStatusInfo } from "../blocks/store.js";

/** Sources of the status of one transaction. */
export interface StatusSources {
  isPending(): boolean | Promise<boolean>;
  /** Returns the number of the block that includes the transaction; undefined if there is none. */
  blockNumber(): Promise<bigint | undefined>;
  /** Returns the reason of the rejection; undefined if there was none. */
  rejectionReason(): string | undefined | Promise<string | undefined>;
}

/**
 * Finds the status of a transaction. Checks the mempool before the blocks: a transaction that moves into a block
 * meanwhile is then found. It enters the block before it leaves the mempool, so the block takes precedence.
 */
export async function findTransactionStatus(sources: StatusSources): Promise<TransactionStatusInfo | undefined> {
  const isPending = await sources.isPending();
  const blockNumber = await sources.blockNumber();
  if (blockNumber !== undefined) {
    return { status: "included", blockNumber };
  }
  if (isPending) {
    return { status: "pending" };
  }
  const reason = await sources.rejectionReason();
  return reason === undefined ? undefined : { status: "rejected", reason };
}
