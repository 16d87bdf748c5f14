/** `gatehouse tx`: what became of a transaction. */
import type { Command } from "commander";
import { addNodeFlags } from "./ask-node.js";
import { print } from "./output.js";
import { transactionState } from "./submit.js";

/** Adds the commands. */
export function addTx(program: Command): void {
  const tx = program.command("tx").description("Look after transactions.");
  addNodeFlags(
    tx.command("status <HASH>").description("Show whether a transaction is pending, in a block, or rejected."),
  ).action(async (hash: string, { node, json }: { node: string; json?: boolean }) => {
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
