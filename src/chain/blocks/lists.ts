/** Pages of blocks and transactions, latest first, and the lists of the chain service. */
import { fromBinary } from "@bufbuild/protobuf";
import { TransactionBodySchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type { ListRecentBlocksRequest, ListTransactionsRequest } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { CorruptionError } from "../../base/errors/corruption.js";
import { latestBlock } from "../../base/latest-block.js";
import { RpcError } from "../../rpc/errors.js";
import { defaultPageSize, createPageToken, pageNumber, pagePosition, readPageToken } from "../../rpc/parameters.js";
import type { Call } from "../../rpc/service.js";
import type { BlockRedactor } from "./block-redactor.js";
import type {
  ListedBlock,
  ListedTransaction,
  Listings,
  TransactionEntry,
  TransactionFilter,
  TransactionPosition,
} from "./listing-store.js";
import { blockZero, noBlockYet } from "./block-rejections.js";
import { checkRetained } from "./retained-blocks.js";
import type { ChainHead } from "./store-types.js";

/** Position after the last transaction of the latest block. */
export const latestPosition: TransactionPosition = { blockNumber: BigInt(Number.MAX_SAFE_INTEGER), position: 0 };

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

/**
 * Reads a page of transactions, and the position after which the next page starts; undefined on the last page. `next` is
 * always a listed transaction, so it reveals no positions of unreadable transactions.
 */
export async function readTransactionPage(params: PageParams) {
  const { store, pageSize, maxBytes } = params;
  const { entries, hasMore } = await findEntries(params, pageSize + 1);
  let bytes = 0;
  const fitting = entries.slice(0, pageSize).filter((entry, i) => {
    bytes += entry.bytes;
    return i === 0 || bytes <= maxBytes;
  });
  const transactions = await store.listedTransactions(fitting);
  const next: TransactionPosition | undefined = hasMore || entries.length > fitting.length ? fitting.at(-1) : undefined;
  return { transactions, next };
}

/**
 * Returns up to `limit` entries that the caller may read, and whether the scan stopped before the end of the list.
 *
 * @throws RpcError ANSWER_TOO_LARGE if the scan limit is reached before the first listed entry.
 */
async function findEntries({ store, filter, before, readableOf, signal }: PageParams, limit: number) {
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

/**
 * Limit on the total bytes of bodies on a page with more than one transaction. A page at this limit plus one body of
 * maximum size fits a response.
 */
const maxBodyBytes = 1024 * 1024;

/** Returns the summary of a block for lists. */
export function toBlockSummary({ hash, header: { number, timestampMs, proposer }, transactionCount }: ListedBlock) {
  return { number, hash, timestampMs, proposer, ...(transactionCount !== undefined && { transactionCount }) };
}

/** Creates the list methods. */
export function createListReads(head: () => ChainHead | undefined, store: Listings, redactor: BlockRedactor) {
  const latestNumber = (): bigint => head()?.number ?? 0n;
  const lowest = (): bigint => head()?.lowestBlock ?? 1n;

  /** Returns the filter of a request. Throws RpcError NOT_FOUND, PRUNED. */
  function filterOf({ blockNumber: requested, sender }: ListTransactionsRequest): TransactionFilter {
    const ofSender = sender === undefined ? {} : { sender };
    if (requested === undefined) {
      return ofSender;
    }
    const block = requested === latestBlock ? latestNumber() : requested;
    if (block === 0n || block > latestNumber()) {
      throw new RpcError(...(block === 0n ? blockZero : noBlockYet));
    }
    checkRetained(block, lowest());
    return { ...ofSender, block };
  }

  /** Returns list items, with a body for each transaction that the caller may read. */
  async function toItems(transactions: readonly ListedTransaction[], identity: string | undefined) {
    const bodies = await redactor.bodies(
      transactions.map(({ body }) => body),
      identity,
    );
    return transactions.map((one, i) => {
      const body = bodies[i] && fromBinary(TransactionBodySchema, bodies[i]);
      const { hash, blockNumber, position: index, timestampMs } = one;
      return { hash, blockNumber, index, timestampMs, ...(body !== undefined && { body }) };
    });
  }

  return {
    async blocks({ pageSize = defaultPageSize, pageToken }: ListRecentBlocksRequest) {
      const [before] = readPageToken("blocks", [pageNumber], pageToken) ?? [];
      const end = latestNumber() + 1n;
      const below = before === undefined || BigInt(before) > end ? end : BigInt(before);
      const summaries = (await store.recentBlocks(below, pageSize + 1)).map(toBlockSummary);
      const blocks = summaries.slice(0, pageSize);
      const nextPageToken = summaries.length > pageSize ? createPageToken("blocks", blocks.at(-1)!.number) : undefined;
      return { blocks, ...(nextPageToken !== undefined && { nextPageToken }) };
    },

    async transactions(request: ListTransactionsRequest, { caller: { identity }, signal }: Call) {
      const { pageSize = defaultPageSize } = request;
      const before = readPosition("transactions", request.pageToken) ?? latestPosition;
      const filter = filterOf(request);
      const { sender } = filter;
      const page = await readTransactionPage({
        ...{ store, filter, before, pageSize, maxBytes: maxBodyBytes, signal },
        // A list of one sender omits the transactions that the caller may not read.
        readableOf:
          sender === undefined
            ? undefined
            : async (entries) => {
                const areReadable = await redactor.areReadable(
                  entries.map(({ program }) => program),
                  identity,
                );
                return entries.filter((_, i) => areReadable[i]);
              },
      });
      const items = await toItems(page.transactions, identity);
      const transactions = sender === undefined ? items : items.filter(({ body }) => body !== undefined);
      if (sender !== undefined) {
        transactions.forEach((one) => checkMatchesFilter(one.body?.sender === sender, one));
      }
      const indexedFrom = sender === undefined ? 1n : await store.indexedFrom();
      return {
        transactions,
        ...(page.next !== undefined && { nextPageToken: positionToken("transactions", page.next) }),
        fromBlock: indexedFrom > lowest() ? indexedFrom : lowest(),
      };
    },
  };
}

/** Returns the position after which the page starts; undefined for the first page. Throws RpcError INVALID_REQUEST. */
function readPosition(list: string, token: string | undefined): TransactionPosition | undefined {
  const [blockNumber, position] = readPageToken(list, [pageNumber, pagePosition], token) ?? [];
  return blockNumber === undefined ? undefined : { blockNumber: BigInt(blockNumber), position: Number(position) };
}

/** Returns the token of a page that starts after a transaction. */
function positionToken(list: string, { blockNumber, position }: TransactionPosition): string {
  return createPageToken(list, blockNumber, position);
}
