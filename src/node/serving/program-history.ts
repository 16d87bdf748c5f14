/** History of a program: the transactions of the chain that changed it. */
import { fromBinary } from "@bufbuild/protobuf";
import { TransactionBodySchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { targetAddress } from "../../base/program-address.js";
import { checkMatchesFilter, latestPosition, readTransactionPage } from "../../chain/blocks/lists.js";
import type { ListedTransaction } from "../../chain/blocks/listing-store.js";
import type { ChainStore } from "../../chain/blocks/store.js";
import type { ProgramChange, ReadProgramHistory } from "../../storage/service.js";

/** Limit in bytes on the transaction bodies that are read for a page. A page shows only a small part of them. */
const maxBodyBytes = 4 * 1024 * 1024;

/** Creates the function that reads a page of the history. */
export function createProgramHistory(
  store: Pick<ChainStore, "transactionEntries" | "listedTransactions" | "indexedFrom" | "lowestBlock">,
): ReadProgramHistory {
  return async (address, before, pageSize, signal) => {
    const [page, indexedFrom, lowest] = await Promise.all([
      readTransactionPage({
        ...{ store, pageSize, signal },
        filter: { program: address },
        before: before ?? latestPosition,
        maxBytes: maxBodyBytes,
      }),
      store.indexedFrom(),
      store.lowestBlock(),
    ]);
    return {
      changes: page.transactions.map((one) => toChange(address, one)),
      next: page.next,
      fromBlock: indexedFrom > lowest ? indexedFrom : lowest,
    };
  };
}

function toChange(address: string, listed: ListedTransaction): ProgramChange {
  const body = fromBinary(TransactionBodySchema, listed.body);
  const operation = body.operation.case === "storage" ? body.operation.value : undefined;
  checkMatchesFilter(operation !== undefined && targetAddress(operation, body) === address, listed);
  const { blockNumber, blockHash, timestampMs, hash: transactionHash } = listed;
  return { blockNumber, blockHash, timestampMs, transactionHash, sender: body.sender, operation: operation! };
}
