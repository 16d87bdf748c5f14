/** Signing, submission and tracking of transactions. */
import { toJson } from "@bufbuild/protobuf";
import { type Operation, signTransaction } from "../../../client/src/transaction.js";
import { TransactionSchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type { NodeKey } from "../../base/crypto/node-key.js";
import { requestOk } from "../calls/request-node.js";
import type { ChangeFlags } from "../usage/flags.js";
import { paint, print } from "../terminal/output.js";
import { loadKey, networkToSignFor } from "./caller.js";
import { followTransaction } from "./transaction-state.js";

/**
 * Signs a transaction and submits it. Returns its hash.
 *
 * @param network Genesis hash of the network to sign for. Default: the network of the node.
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
  const text = await requestOk(node, "/chain/transactions", {
    body: { transaction: toJson(TransactionSchema, transaction) },
  });
  return (JSON.parse(text) as { hash: string }).hash;
}

/**
 * Signs and submits a transaction, waits for its block unless `--no-wait` is set, and prints the result.
 *
 * @param subject Changed object, for people.
 * @param members Changed object as JSON members.
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
    const position = state === undefined ? "pending" : `in block ${state.blockNumber}`;
    print(subject, paint("dim", `transaction ${hash} ${position}`));
  }
}
