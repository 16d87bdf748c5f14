/** What became of a transaction. */
import type { TransactionStatusInfo } from "../blocks/store.js";

/** The places where a transaction may be. */
export interface StatusSources {
  isPending(hash: string): boolean | Promise<boolean>;
  blockOf(hash: string): Promise<bigint | undefined>;
  rejectionOf(hash: string): string | undefined | Promise<string | undefined>;
}

/**
 * Looks for a transaction in the order in which it moves: what is gone from one place has arrived at the next one
 * already. It is in a block before it leaves the mempool, so a block counts more.
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
