/** Lists of the chain service: pages of blocks and transactions, latest first. */
import { fromBinary } from "@bufbuild/protobuf";
import { TransactionBodySchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type { ListRecentBlocksRequest, ListTransactionsRequest } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { latestBlock } from "../../base/latest-block.js";
import { RpcError } from "../../rpc/errors.js";
import { defaultPageSize, createPageToken, pageNumber, pagePosition, readPageToken } from "../../rpc/parameters.js";
import type { Call } from "../../rpc/service.js";
import type { BlockRedactor } from "./block-redactor.js";
import {
  checkMatchesFilter,
  type ListedBlock,
  type ListedTransaction,
  type Listings,
  latestPosition,
  readTransactionPage,
  type TransactionPosition,
  type TransactionFilter,
} from "./listings.js";
import { blockZero, checkRetained, noBlockYet } from "./retained-blocks.js";
import type { ChainHead } from "./store.js";

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
      throw new RpcError("NOT_FOUND", block === 0n ? blockZero : noBlockYet);
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
export function readPosition(list: string, token: string | undefined): TransactionPosition | undefined {
  const [blockNumber, position] = readPageToken(list, [pageNumber, pagePosition], token) ?? [];
  return blockNumber === undefined ? undefined : { blockNumber: BigInt(blockNumber), position: Number(position) };
}

/** Returns the token of a page that starts after a transaction. */
export function positionToken(list: string, { blockNumber, position }: TransactionPosition): string {
  return createPageToken(list, blockNumber, position);
}
