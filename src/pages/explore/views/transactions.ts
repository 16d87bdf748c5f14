/** Shows all transactions that the node stores, latest first. */
import { operationKinds } from "../operation-text.js";
import { linkTo } from "../routes.js";
import { transactionTable } from "../table/transaction-rows.js";
import type { View, ViewContext } from "../view.js";

export async function viewTransactions(context: ViewContext): Promise<View> {
  const columns = ["hash", "kind", "operation", "block", "time", "sender"] as const;
  const transactions = await transactionTable(context, {}, columns, "There is no transaction yet.");
  return { title: "Transactions", contents: [transactions] };
}

/** Leads to the transactions that create programs, since no rpc lists the programs of all owners. */
export function viewPrograms(): Promise<View> {
  const query = new URLSearchParams({ "transactions.kind": operationKinds["createProgram"]! });
  location.replace(`${linkTo({ kind: "transactions" })}?${query.toString()}`);
  return Promise.resolve({ title: "Programs", contents: [] });
}
