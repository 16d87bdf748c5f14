/** Signs transactions, hands them in and follows them into a block. */
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { TransactionBodySchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import type { StorageOperationSchema } from "../../gen/gatehouse/storage/v1/operation_pb.js";
import type { NodeKey } from "../base/node-key.js";
import { transactionMessage } from "../chain/signing.js";
import { askSuccessfully } from "./ask-node.js";
import { loadKey, networkToSignFor } from "./caller.js";
import type { ChangeFlags } from "./flags.js";
import { paint, print } from "./output.js";
import { followTransaction } from "./transaction-state.js";

/** What a transaction does, as a literal. */
export type Change = NonNullable<MessageInitShape<typeof TransactionBodySchema>["operation"]>;

/** A storage operation as a literal. */
export type StorageChange = NonNullable<MessageInitShape<typeof StorageOperationSchema>["operation"]>;

/** How long a transaction may wait for its block. */
const expiresAfterMs = 600_000;

/**
 * Signs a change and hands it in; gives its hash.
 *
 * @param network hash of the genesis that it is for; when left out, the network that the node is of.
 */
export async function submitChange(
  node: string,
  key: NodeKey,
  operation: Change,
  nonce: number,
  network?: string,
): Promise<string> {
  const body = toBinary(
    TransactionBodySchema,
    create(TransactionBodySchema, {
      sender: key.publicKey,
      nonce: BigInt(nonce),
      timestampMs: BigInt(Date.now()),
      network: await networkToSignFor({ node, network }),
      expiresMs: BigInt(Date.now() + expiresAfterMs),
      operation,
    }),
  );
  const signature = key.sign(transactionMessage(body));
  const text = await askSuccessfully(node, "/chain/transactions", {
    body: { transaction: { body: Buffer.from(body).toString("base64"), signature: signature.toString("base64") } },
  });
  return (JSON.parse(text) as { hash: string }).hash;
}

/**
 * Signs a change, hands it in, waits for its block unless told not to, and says what became of it.
 *
 * @param subject what was changed, for people.
 * @param members the same with its name, for machines.
 */
export async function submitAndReport(
  flags: ChangeFlags,
  operation: Change,
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
    const where = state === undefined ? "pending" : `in block ${state.blockNumber}`;
    print(subject, paint("dim", `transaction ${hash} ${where}`));
  }
}
