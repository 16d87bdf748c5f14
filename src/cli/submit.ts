/** Signs transactions, hands them in and follows them into a block. */
import { type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { setTimeout as sleep } from "node:timers/promises";
import { type Operation, signTransaction } from "../../client/src/transaction.js";
import { TransactionSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import type { StorageOperationSchema } from "../../gen/gatehouse/storage/v1/operation_pb.js";
import type { NodeKey } from "../base/node-key.js";
import type { Command } from "commander";
import { addNodeFlags, askSuccessfully } from "./ask-node.js";
import { addKeyFlag, addNetworkFlag, loadKey, type NetworkFlags, networkToSignFor } from "./caller.js";
import { ExitError, paint, print } from "./output.js";

/** A storage operation as a literal. */
export type StorageChange = NonNullable<MessageInitShape<typeof StorageOperationSchema>["operation"]>;

/** What became of a transaction, as the node says it. */
export interface TransactionState {
  readonly hash: string;
  readonly status: "pending" | "included" | "rejected";
  readonly blockNumber: number | null;
  readonly reason: string | null;
}

const pollEveryMs = 100;
const followForMs = 15_000;

/**
 * Signs a change and hands it in; gives its hash.
 *
 * @param network hash of the genesis that it is for; when left out, the network that the node is of.
 */
export async function submitChange(
  node: string,
  key: NodeKey,
  operation: Operation,
  nonce: number,
  network?: string,
): Promise<string> {
  const content = { operation, nonce: BigInt(nonce), network: await networkToSignFor({ node, network }) };
  const { transaction } = await signTransaction(key, content);
  const text = await askSuccessfully(node, "/chain/transactions", {
    body: { transaction: toJson(TransactionSchema, transaction) },
  });
  return (JSON.parse(text) as { hash: string }).hash;
}

/** Flags of the commands that change something. */
export interface ChangeFlags extends NetworkFlags {
  readonly key?: string;
  readonly json?: boolean;
  readonly wait: boolean;
}

/** Adds {@link ChangeFlags} to a command. */
export function addChangeFlags(command: Command): Command {
  command.option("--no-wait", "Do not wait for the block.");
  return addNodeFlags(addNetworkFlag(addKeyFlag(command, "The key that signs.")));
}

/**
 * Signs a change, hands it in, waits for its block unless told not to, and says what became of it.
 *
 * @param subject what was changed, for people.
 * @param members the same with its name, for machines.
 */
export async function submitAndReport(
  flags: ChangeFlags,
  operation: Operation,
  subject: string,
  members: object,
  nonce = Date.now(),
): Promise<void> {
  const { node, network, json, wait } = flags;
  const hash = await submitChange(node, await loadKey(flags.key), operation, nonce, network);
  const state = wait ? await followTransaction(node, hash) : undefined;
  if (json === true) {
    print(JSON.stringify({ ...members, ...(state ?? { hash, status: "pending" }) }));
  } else {
    print(subject, paint("dim", state === undefined ? `pending: ${hash}` : `in block ${state.blockNumber}: ${hash}`));
  }
}

/** Where a transaction is now. */
export async function transactionState(node: string, hash: string): Promise<TransactionState> {
  return JSON.parse(await askSuccessfully(node, `/chain/transactions/${encodeURIComponent(hash)}`)) as TransactionState;
}

/**
 * Waits until a transaction is in a block.
 *
 * @throws ExitError when it is rejected, or still pending after a while.
 */
export async function followTransaction(node: string, hash: string): Promise<TransactionState> {
  const giveUpAtMs = Date.now() + followForMs;
  for (;;) {
    const state = await transactionState(node, hash);
    if (state.status === "rejected") {
      throw new ExitError(`The transaction ${hash} is rejected: ${state.reason ?? "no reason given"}`, 1);
    }
    if (state.status === "included") {
      return state;
    }
    if (Date.now() > giveUpAtMs) {
      throw new ExitError(
        `The transaction ${hash} is still pending after ${followForMs / 1000} s; look again with: gatehouse tx status ${hash}`,
        1,
      );
    }
    await sleep(pollEveryMs);
  }
}
