/** Shows transactions in a table. */
import type { TransactionsAnswer, TransactionSummary } from "../answers.js";
import { type Column, containing, type DataTable, type Filter } from "./data-table.js";
import { type ExploredNode, withQuery } from "../node.js";
import { operationLine, operationText } from "../operation-words.js";
import { blockLink, ownerLink, timeAgo, transactionLink } from "../parts.js";

/** Columns by name; a view takes those that differ between its rows. */
export const transactionColumns = {
  place: { name: "Place", cell: ({ index }) => index, csv: ({ index }) => index },
  block: {
    name: "Block",
    cell: ({ blockNumber }) => blockLink(blockNumber),
    csv: ({ blockNumber }) => blockNumber,
  },
  when: {
    name: "When",
    cell: ({ timestamp }) => timeAgo(timestamp),
    csv: ({ timestamp }) => new Date(timestamp).toISOString(),
  },
  hash: { name: "Hash", cell: ({ hash }) => transactionLink(hash), csv: ({ hash }) => hash },
  operation: { name: "Operation", cell: ({ body }) => operationLine(body), csv: ({ body }) => operationText(body) },
  sender: {
    name: "By",
    cell: ({ body }) => (body === undefined ? undefined : ownerLink(body.sender)),
    csv: ({ body }) => body?.sender,
  },
} as const satisfies Record<string, Column<TransactionSummary>>;

export const operationFilter: Filter<TransactionSummary> = containing(
  "operation",
  "Operation contains",
  ({ body }) => operationText(body) ?? "",
);

/** Returns a loader for the transactions of a block or a sender, or for all. */
export function loadTransactions(
  { ask }: Pick<ExploredNode, "ask">,
  of: { readonly blockNumber?: string; readonly sender?: string },
  signal: AbortSignal,
): DataTable<TransactionSummary>["load"] {
  return async (pageToken, size) => {
    const path = withQuery("chain/transactions", { ...of, pageToken, pageSize: String(size) });
    const { transactions, nextPageToken } = await ask<TransactionsAnswer>(path, signal);
    return { rows: transactions, next: nextPageToken };
  };
}
