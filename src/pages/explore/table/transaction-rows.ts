/** Tables of transactions. */
import type { TransactionsResponse, TransactionSummary } from "../responses.js";
import { type Column, column, containing, type DataTable, dataTable, type Filter, oneOf } from "./data-table.js";
import { type ExploredNode, withQuery } from "../node.js";
import type { ViewContext } from "../view.js";
import { hiddenKind, kindOf, operationKinds, operationLine, operationText } from "../operation-text.js";
import { blockLink, ownerLink, tag, timeAndAge, transactionLink } from "../parts.js";

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
  kind: {
    name: "Kind",
    cell: ({ body }) => tag(kindOf(body), body === undefined ? "private" : undefined),
    csv: ({ body }) => kindOf(body),
  },
  operation: { name: "Operation", cell: ({ body }) => operationLine(body), csv: ({ body }) => operationText(body) },
  sender: { name: "Sender", cell: ({ body }) => body && ownerLink(body.sender), csv: ({ body }) => body?.sender },
} as const satisfies Record<string, Column<TransactionSummary>>;

const operationFilter: Filter<TransactionSummary> = containing(
  "operation",
  "Operation contains",
  ({ body }) => operationText(body) ?? "",
);

const kindFilter: Filter<TransactionSummary> = oneOf(
  "kind",
  "Kind",
  [...Object.values(operationKinds), hiddenKind],
  ({ body }) => kindOf(body),
);

/** Filter by the sender. The node applies it to a complete key, and the page to a part of one. */
const senderFilter: Filter<TransactionSummary> = containing(
  "sender",
  "Sender contains",
  ({ body }) => body?.sender ?? "",
  (value) => value.replace(/^ed25519:/i, ""),
);

const completeKey = /^(ed25519:)?(0x)?[0-9a-f]{64}$/i;

/** Transactions of a block, of a sender, or of the chain. */
interface Selection {
  readonly blockNumber?: string;
  readonly sender?: string;
}

/** Shows transactions with filters, of which a selected sender needs none. */
export async function transactionTable(
  { node, signal }: Pick<ViewContext, "node" | "signal">,
  selection: Selection,
  columns: readonly (keyof typeof transactionColumns)[],
  empty: string,
): Promise<HTMLElement> {
  return await dataTable({
    id: "transactions",
    label: "Transactions",
    columns: columns.map((name) => transactionColumns[name]),
    filters: [kindFilter, operationFilter, ...(selection.sender === undefined ? [senderFilter] : [])],
    empty,
    load: loadTransactions(node, selection, signal),
  });
}

function loadTransactions(
  { fetchJson }: Pick<ExploredNode, "fetchJson">,
  selection: Selection,
  signal: AbortSignal,
): DataTable<TransactionSummary>["load"] {
  return async (pageToken, size, values) => {
    const entered = values.get(senderFilter.name) ?? "";
    const sender = completeKey.test(entered) ? { sender: entered } : {};
    const query = { ...sender, ...selection, pageToken, pageSize: String(size) };
    const path = withQuery("chain/transactions", query);
    const { transactions, nextPageToken } = await fetchJson<TransactionsResponse>(path, signal);
    return { rows: transactions, next: nextPageToken };
  };
}
