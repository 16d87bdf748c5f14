/** Signing, submission and tracking of transactions. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Operation } from "../../../client/src/transaction.js";
import type { NodeKey } from "../../base/crypto/node-key.js";
import { requestOk } from "../calls/request-node.js";
import { ExitError } from "../usage/errors.js";
import type { ChangeFlags } from "../usage/flags.js";
import { paint, printResult } from "../terminal/output.js";
import { loadKey, networkToSignFor } from "./caller.js";

const pollEveryMs = 100;
const followForMs = 15_000;

/** Signs a transaction and submits it. Returns its hash. */
export async function submitChange(
  node: string,
  key: NodeKey,
  operation: Operation,
  nonce: number,
  network?: string,
): Promise<string> {
  // Loaded lazily, since the status of a transaction does not need them.
  const [{ toJson }, { signTransaction }, { TransactionSchema }] = await Promise.all([
    import("@bufbuild/protobuf"),
    import("../../../client/src/transaction.js"),
    import("../../../gen/gatehouse/chain/v1/block_pb.js"),
  ]);
  const content = { operation, nonce: BigInt(nonce), network: await networkToSignFor({ node, network }) };
  const { transaction } = await signTransaction(key, content);
  const text = await requestOk(node, "/chain/transactions", {
    body: { transaction: toJson(TransactionSchema, transaction) },
  });
  return (JSON.parse(text) as { hash: string }).hash;
}

/** Signs and submits a transaction, waits for its block unless `--no-wait` is set, and prints the result. */
export async function submitAndReport(
  flags: ChangeFlags,
  operation: Operation,
  subject: Readonly<Record<string, string>>,
  nonce = Date.now(),
): Promise<void> {
  const hash = await submitChange(flags.node, await loadKey(flags.key), operation, nonce, flags.network);
  const state = flags.wait ? await followTransaction(flags.node, hash) : undefined;
  printResult(flags, { ...subject, ...(state ?? { hash, status: "pending" }) }, () => {
    const position = state === undefined ? "pending" : `in block ${state.blockNumber}`;
    return [...Object.values(subject), paint("dim", `transaction ${hash} ${position}`)];
  });
}

interface TransactionState {
  readonly hash: string;
  readonly status: "pending" | "included" | "rejected";
  readonly blockNumber: number | null;
  readonly reason: string | null;
}

export async function transactionState(node: string, hash: string): Promise<TransactionState> {
  return JSON.parse(await requestOk(node, `/chain/transactions/${encodeURIComponent(hash)}`)) as TransactionState;
}

/**
 * Polls until a transaction is in a block. Throws ExitError if the transaction is rejected, or still pending after 15
 * s.
 */
export async function followTransaction(node: string, hash: string): Promise<TransactionState> {
  const deadlineMs = Date.now() + followForMs;
  for (;;) {
    const state = await transactionState(node, hash);
    if (state.status === "rejected") {
      throw new ExitError(`The transaction ${hash} is rejected: ${state.reason ?? "no reason given"}`);
    }
    if (state.status === "included") {
      return state;
    }
    if (Date.now() > deadlineMs) {
      throw new ExitError(
        `The transaction ${hash} is still pending after ${followForMs / 1000} s; check again with: gatehouse tx status ${hash}`,
      );
    }
    await sleep(pollEveryMs);
  }
}
