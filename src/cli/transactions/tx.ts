/** `gatehouse tx`: lists transactions, and shows the status of one. */
import type { Command } from "commander";
import { addNodeFlags, addPageFlags, addReadFlags, type NodeFlags } from "../usage/flags.js";
import { print, printable } from "../terminal/output.js";
import type { TransactionFlags } from "./transaction-list.js";
import { transactionState } from "./transaction-state.js";

export function addTx(tx: Command): void {
  addNodeFlags(
    tx.command("status <HASH>").description("Show whether a transaction is pending, in a block, or rejected."),
  ).action(async (hash: string, { node, json }: NodeFlags) => {
    const state = await transactionState(node, hash);
    if (json === true) {
      print(JSON.stringify(state));
    } else if (state.status === "included") {
      print(`included in block ${state.blockNumber}`);
    } else {
      print(state.reason === null ? state.status : `${state.status}: ${printable(state.reason)}`);
    }
  });

  addPageFlags(addReadFlags(tx.command("list").description("List the transactions in blocks, latest first.")))
    .option("--sender <KEY>", "Only transactions that this public key signed and that you may read.")
    .option("--block <NUMBER>", "Only transactions of this block; latest for the latest block.")
    .addHelpText(
      "after",
      `
Transactions on programs that you may not read are listed as private, and left out with --sender. Pending transactions are
not listed. To list the changes of one program: gatehouse storage history ADDRESS

Examples:
  gatehouse tx list --limit 10
  gatehouse tx list --block latest
  gatehouse tx list --sender 0x… --key alice.key`,
    )
    .action(async (flags: TransactionFlags) => {
      const { listTransactions } = await import("./transaction-list.js");
      await listTransactions(flags);
    });
}
