/** Shows all transactions that the node lists, latest first. */
import { dataTable } from "../table/data-table.js";
import { loadTransactions, operationFilter, transactionColumns } from "../table/transaction-rows.js";
import type { Looking, View } from "../view.js";

export async function viewTransactions({ node, signal }: Looking): Promise<View> {
  const { hash, operation, block, when, sender } = transactionColumns;
  const transactions = await dataTable({
    id: "transactions",
    label: "Transactions",
    columns: [hash, operation, block, when, sender],
    filters: [operationFilter],
    empty: "There is no transaction yet.",
    load: loadTransactions(node, {}, signal),
  });
  return { title: "Transactions", contents: [transactions] };
}
