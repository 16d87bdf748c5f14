/** Pages of blocks and transactions, latest first, as used by the services. */
import type { BlockHeader } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type { VerifiedTransaction } from "../transactions/transaction.js";
import { CorruptionError } from "../../base/errors/corruption.js";
import { RpcError } from "../../rpc/errors.js";

/** Block in a list. */
export interface ListedBlock {
  /** Block hash: 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly header: BlockHeader;
  /** Undefined if the transactions of the block are not retained. */
  readonly transactionCount: number | undefined;
}

/** Position of a transaction in the chain. */
export interface TransactionPosition {
  readonly blockNumber: bigint;
  /** Index within the block, from 0. */
  readonly position: number;
}

/** Index entry of a transaction, before its body is read. */
export interface TransactionEntry extends TransactionPosition {
  /** Size of the body in bytes. */
  readonly bytes: number;
  /** Address of the program that the transaction changes; undefined if it changes none. */
  readonly program: string | undefined;
}

/** Transaction with its body. */
export interface ListedTransaction extends TransactionPosition {
  readonly hash: string;
  readonly blockHash: string;
  /** Timestamp of the block. */
  readonly timestampMs: bigint;
  readonly body: Uint8Array;
}

/** Filter of transactions. Supports no filter, a block, a sender, both of them, or a program. */
export interface TransactionFilter {
  readonly block?: bigint | undefined;
  /** Public key: 0x and 64 lower-case hex digits. */
  readonly sender?: string | undefined;
  /** Address of the program. */
  readonly program?: string | undefined;
}

/** Lists of stored blocks and transactions. */
export interface Listings {
  /** Returns blocks with numbers below the given one, without block 0. */
  recentBlocks(below: bigint, limit: number): Promise<ListedBlock[]>;
  /** Returns index entries that match the filter and precede a position, latest first. */
  transactionEntries(
    filter: TransactionFilter,
    before: TransactionPosition,
    limit: number,
  ): Promise<TransactionEntry[]>;
  /** Returns the transactions at these positions, latest first. Omits those that were pruned meanwhile. */
  listedTransactions(positions: readonly TransactionPosition[]): Promise<ListedTransaction[]>;
  /** Checks that the index columns of a block's transactions match their bodies. Throws CorruptionError. */
  checkListed(number: bigint, transactions: readonly Pick<VerifiedTransaction, "body">[]): Promise<void>;
  /** Returns the first block whose transactions are indexed by sender and program. */
  indexedFrom(): Promise<bigint>;
}

/** Position after the last transaction of the latest block. */
export const latestPosition: TransactionPosition = { blockNumber: BigInt(Number.MAX_SAFE_INTEGER), position: 0 };

/** Page of transactions. */
export interface TransactionPage {
  readonly transactions: readonly ListedTransaction[];
  /** Position after which the next page starts; undefined on the last page. */
  readonly next: TransactionPosition | undefined;
}

/** Parameters of a page. */
export interface PageParams {
  readonly store: Pick<Listings, "transactionEntries" | "listedTransactions">;
  readonly filter: TransactionFilter;
  readonly before: TransactionPosition;
  readonly pageSize: number;
  /** Limit on the total bytes of bodies on a page; a single larger body still forms a page. */
  readonly maxBytes: number;
  /** Returns those of the entries that the caller may read. Default: all of them. */
  readonly readableOf?: ((entries: readonly TransactionEntry[]) => Promise<readonly TransactionEntry[]>) | undefined;
  readonly signal: AbortSignal;
}

/** Number of entries read at once for a filtered page, and limit on the entries scanned for it. */
const portionEntries = 500;
const maxScanned = 10_000;

/** Reads a page. Its `next` is always a listed transaction, so it reveals no positions of unreadable transactions. */
export async function readTransactionPage(params: PageParams): Promise<TransactionPage> {
  const { store, pageSize, maxBytes } = params;
  const { entries, hasMore } = await findEntries(params, pageSize + 1);
  let bytes = 0;
  const fitting = entries.slice(0, pageSize).filter((entry, i) => {
    bytes += entry.bytes;
    return i === 0 || bytes <= maxBytes;
  });
  const transactions = await store.listedTransactions(fitting);
  return { transactions, next: hasMore || entries.length > fitting.length ? fitting.at(-1) : undefined };
}

interface FoundEntries {
  readonly entries: readonly TransactionEntry[];
  /** True if the scan stopped before the end of the list. */
  readonly hasMore: boolean;
}

/**
 * Returns up to `limit` entries that the caller may read.
 *
 * @throws RpcError ANSWER_TOO_LARGE if the scan limit is reached before the first listed entry.
 */
async function findEntries(
  { store, filter, before, readableOf, signal }: PageParams,
  limit: number,
): Promise<FoundEntries> {
  if (readableOf === undefined) {
    return { entries: await store.transactionEntries(filter, before, limit), hasMore: false };
  }
  const found: TransactionEntry[] = [];
  let next: TransactionPosition | undefined = before;
  for (let scanned = 0; next !== undefined && found.length < limit && scanned < maxScanned; scanned += portionEntries) {
    signal.throwIfAborted();
    const entries: TransactionEntry[] = await store.transactionEntries(filter, next, portionEntries);
    found.push(...(await readableOf(entries)));
    next = entries.length < portionEntries ? undefined : entries.at(-1);
  }
  if (next !== undefined && found.length === 0) {
    throw new RpcError(
      "ANSWER_TOO_LARGE",
      `More than ${maxScanned} transactions that you may not read precede the next one that you may; add a block_number.`,
    );
  }
  return { entries: found.slice(0, limit), hasMore: next !== undefined };
}

/** Throws CorruptionError if a query returned a transaction that does not match its filter. */
export function checkMatchesFilter(isMatch: boolean, { hash }: Pick<ListedTransaction, "hash">): void {
  if (!isMatch) {
    throw new CorruptionError(`The index entry of transaction ${hash} in the database does not match the transaction.`);
  }
}
