/** Shows all transactions that the node stores, latest first. */
import { dataTable } from "../table/data-table.js";
import {
  kindFilter,
  loadTransactions,
  operationFilter,
  senderFilter,
  transactionColumns,
} from "../table/transaction-rows.js";
import type { View, ViewContext } from "../view.js";

export async function viewTransactions({ node, signal }: ViewContext): Promise<View> {
  const { hash, kind, operation, block, time, sender } = transactionColumns;
  const transactions = await dataTable({
    id: "transactions",
    label: "Transactions",
    columns: [hash, kind, operation, block, time, sender],
    filters: [kindFilter, operationFilter, senderFilter],
    empty: "There is no transaction yet.",
    load: loadTransactions(node, {}, signal),
  });
  return { title: "Transactions", contents: [transactions] };
}
