/** Status of a transaction, and waiting for its block. */
import { setTimeout as sleep } from "node:timers/promises";
import { requestOk } from "../calls/request-node.js";
import { ExitError, exitCodes } from "../usage/errors.js";

/** Status of a transaction in the format of the node. */
export interface TransactionState {
  readonly hash: string;
  readonly status: "pending" | "included" | "rejected";
  readonly blockNumber: number | null;
  readonly reason: string | null;
}

const pollEveryMs = 100;
const followForMs = 15_000;

/** Requests the status of a transaction. */
export async function transactionState(node: string, hash: string): Promise<TransactionState> {
  return JSON.parse(await requestOk(node, `/chain/transactions/${encodeURIComponent(hash)}`)) as TransactionState;
}

/**
 * Polls until a transaction is in a block.
 *
 * @throws ExitError if the transaction is rejected, or still pending after 15 s.
 */
export async function followTransaction(node: string, hash: string): Promise<TransactionState> {
  const deadlineMs = Date.now() + followForMs;
  for (;;) {
    const state = await transactionState(node, hash);
    if (state.status === "rejected") {
      throw new ExitError(
        `The transaction ${hash} is rejected: ${state.reason ?? "no reason given"}`,
        exitCodes.failed,
      );
    }
    if (state.status === "included") {
      return state;
    }
    if (Date.now() > deadlineMs) {
      throw new ExitError(
        `The transaction ${hash} is still pending after ${followForMs / 1000} s; check again with: gatehouse tx status ${hash}`,
        exitCodes.failed,
      );
    }
    await sleep(pollEveryMs);
  }
}
