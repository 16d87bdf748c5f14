/** Columns, filter and loader of tables of transactions. */
import type { TransactionsResponse, TransactionSummary } from "../responses.js";
import { type Column, column, containing, type DataTable, type Filter } from "./data-table.js";
import { type ExploredNode, withQuery } from "../node.js";
import { operationLine, operationText } from "../operation-text.js";
import { blockLink, ownerLink, timeAndAge, transactionLink } from "../parts.js";

const time: Column<{ readonly timestamp: number }> = {
  name: "Time",
  cell: ({ timestamp }) => timeAndAge(timestamp),
  csv: ({ timestamp }) => new Date(timestamp).toISOString(),
};

const block: Column<{ readonly blockNumber: number }> = column("Block", "blockNumber", blockLink);

/** Columns by name. Each view selects the columns that it needs. */
export const transactionColumns = {
  ...{ time, block },
  index: { name: "Index", cell: ({ index }) => index, csv: ({ index }) => index },
  hash: { name: "Hash", cell: ({ hash }) => transactionLink(hash), csv: ({ hash }) => hash },
  operation: { name: "Operation", cell: ({ body }) => operationLine(body), csv: ({ body }) => operationText(body) },
  sender: { name: "Sender", cell: ({ body }) => body && ownerLink(body.sender), csv: ({ body }) => body?.sender },
} as const satisfies Record<string, Column<TransactionSummary>>;

export const operationFilter: Filter<TransactionSummary> = containing(
  "operation",
  "Operation contains",
  ({ body }) => operationText(body) ?? "",
);

/** Returns a loader for the transactions of a block, of a sender, or of the chain. */
export function loadTransactions(
  { fetchJson }: Pick<ExploredNode, "fetchJson">,
  filter: { readonly blockNumber?: string; readonly sender?: string },
  signal: AbortSignal,
): DataTable<TransactionSummary>["load"] {
  return async (pageToken, size) => {
    const path = withQuery("chain/transactions", { ...filter, pageToken, pageSize: String(size) });
    const { transactions, nextPageToken } = await fetchJson<TransactionsResponse>(path, signal);
    return { rows: transactions, next: nextPageToken };
  };
}
