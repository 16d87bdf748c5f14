/** Shows all transactions that the node stores, latest first. */
import { transactionTable } from "../table/transaction-rows.js";
import type { View, ViewContext } from "../view.js";

export async function viewTransactions(context: ViewContext): Promise<View> {
  const columns = ["hash", "kind", "operation", "block", "time", "sender"] as const;
  const transactions = await transactionTable(context, {}, columns, "There is no transaction yet.");
  return { title: "Transactions", contents: [transactions] };
}
