/** `gatehouse tx`: what became of a transaction. */
import type { Command } from "commander";
import { addNodeFlags, type NodeFlags } from "../usage/flags.js";
import { print } from "../terminal/output.js";
import { transactionState } from "./transaction-state.js";

/** Adds the commands. */
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
      print(state.reason === null ? state.status : `${state.status}: ${state.reason}`);
    }
  });
}
