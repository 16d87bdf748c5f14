/** Pages of blocks and transactions, newest first, as the services speak of them. */
import type { BlockHeader } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type { ReadTransaction } from "../transactions/transaction.js";
import { CorruptionError } from "../../base/errors/corruption.js";
import { RpcError } from "../../rpc/errors.js";

/** A block in a list. */
export interface ListedBlock {
  /** 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly header: BlockHeader;
  /** Undefined where its transactions are not kept. */
  readonly transactionCount: number | undefined;
}

/** Where a transaction is. */
export interface TransactionPlace {
  readonly blockNumber: bigint;
  /** Among those of its block, from 0. */
  readonly position: number;
}

/** A transaction before it is read. */
export interface TransactionEntry extends TransactionPlace {
  /** Of its body. */
  readonly bytes: number;
  /** Address of the program that it changes; undefined for one that is about none. */
  readonly program: string | undefined;
}

/** A transaction that was read. */
export interface ListedTransaction extends TransactionPlace {
  readonly hash: string;
  readonly blockHash: string;
  /** Of its block. */
  readonly timestampMs: bigint;
  readonly body: Uint8Array;
}

/** Which transactions: all, or those of a block, of a sender, of a sender in a block, or those that changed a program. */
export interface TransactionsOf {
  readonly block?: bigint | undefined;
  /** 0x and 64 lower-case hex digits. */
  readonly sender?: string | undefined;
  /** Its address. */
  readonly program?: string | undefined;
}

/** What is listed of the stored blocks. */
export interface Listings {
  /** Blocks from 1 on with smaller numbers than this. */
  recentBlocks(below: bigint, limit: number): Promise<ListedBlock[]>;
  /** Transactions before a place. */
  transactionEntries(of: TransactionsOf, before: TransactionPlace, limit: number): Promise<TransactionEntry[]>;
  /** The transactions at these places, in the order of lists; without those that were removed meanwhile. */
  listedTransactions(places: readonly TransactionPlace[]): Promise<ListedTransaction[]>;
  /** Checks that the transactions of a block are found by who sent them and what they change. Throws DamageError. */
  checkListed(number: bigint, transactions: readonly Pick<ReadTransaction, "body">[]): Promise<void>;
  /** Of older blocks than this one, transactions are not found by their senders and by what they change. */
  indexedFrom(): Promise<bigint>;
}

/** After the last transaction of the newest block. */
export const newestPlace: TransactionPlace = { blockNumber: BigInt(Number.MAX_SAFE_INTEGER), position: 0 };

/** A page of transactions. */
export interface TransactionPage {
  readonly transactions: readonly ListedTransaction[];
  /** Where the next page goes on; undefined where there is none. */
  readonly next: TransactionPlace | undefined;
}

/** What a page is made of. */
export interface PageParts {
  readonly store: Pick<Listings, "transactionEntries" | "listedTransactions">;
  readonly of: TransactionsOf;
  readonly before: TransactionPlace;
  readonly pageSize: number;
  /** Most bytes of bodies on a page, if it has more than one. */
  readonly mostBytes: number;
  /** Which of these are listed, where not all are. */
  readonly filter?: ((entries: readonly TransactionEntry[]) => Promise<readonly TransactionEntry[]>) | undefined;
  readonly signal: AbortSignal;
}

/** Entries that are looked at at a time, where not all are listed, and in all for one page. */
const portion = 500;
const mostLookedAt = 10_000;

/** Reads a page. The next one goes on after the last one that is listed: where others are, it does not tell. */
export async function readTransactionPage(deps: PageParts): Promise<TransactionPage> {
  const { store, pageSize, mostBytes } = deps;
  const { entries, areMore } = await findEntries(deps, pageSize + 1);
  let bytes = 0;
  const fitting = entries.slice(0, pageSize).filter((entry, i) => {
    bytes += entry.bytes;
    return i === 0 || bytes <= mostBytes;
  });
  const transactions = await store.listedTransactions(fitting);
  return { transactions, next: areMore || entries.length > fitting.length ? fitting.at(-1) : undefined };
}

interface FoundEntries {
  readonly entries: readonly TransactionEntry[];
  /** The look ended before the end. */
  readonly areMore: boolean;
}

/** @throws Failure ANSWER_TOO_LARGE where there are too many before the first that is listed. */
async function findEntries({ store, of, before, filter, signal }: PageParts, wanted: number): Promise<FoundEntries> {
  if (filter === undefined) {
    return { entries: await store.transactionEntries(of, before, wanted), areMore: false };
  }
  const found: TransactionEntry[] = [];
  let next: TransactionPlace | undefined = before;
  for (let looked = 0; next !== undefined && found.length < wanted && looked < mostLookedAt; looked += portion) {
    signal.throwIfAborted();
    const entries: TransactionEntry[] = await store.transactionEntries(of, next, portion);
    found.push(...(await filter(entries)));
    next = entries.length < portion ? undefined : entries.at(-1);
  }
  if (next !== undefined && found.length === 0) {
    throw new RpcError(
      "ANSWER_TOO_LARGE",
      "There are too many transactions that you may not read before the next that you may; name a block_number, too.",
    );
  }
  return { entries: found.slice(0, wanted), areMore: next !== undefined };
}

/** Throws DamageError for a transaction that was found by what it does not say. */
export function checkFound(isRight: boolean, { hash }: Pick<ListedTransaction, "hash">): void {
  if (!isRight) {
    throw new CorruptionError(`Transaction ${hash} is found in the database by what it does not say.`);
  }
}
