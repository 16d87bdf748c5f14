/** Drafts of transactions: encoded for the preview, then signed and submitted with exactly those bytes. */
import { fromBinary, toJson } from "@bufbuild/protobuf";
import { base64Encode } from "@bufbuild/protobuf/wire";
import { sha256Hex } from "../../../../client/src/bytes.js";
import type { ValidSigner } from "../../../../client/src/signer.js";
import { encodeBody, type Operation, transactionMessage } from "../../../../client/src/transaction.js";
import { TransactionBodySchema } from "../../../../gen/gatehouse/chain/v1/block_pb.js";
import type { HeadResponse, SenderResponse, TransactionBody } from "../responses.js";
import type { ExploredNode } from "../node.js";
import { nodeNowMs } from "../format.js";

/** Time in milliseconds for which a draft may enter a block. */
const lifeMs = 600_000;

/** Transaction before its signature. */
export interface Draft {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Hash of the transaction, 0x and 64 lower-case hex digits. */
  readonly hash: string;
  /** Content of the bytes, decoded from them, in the JSON form of the API. */
  readonly body: TransactionBody;
}

/** Encodes an operation as the next transaction of a sender. Times are those of the node's clock. */
export async function createDraft(node: ExploredNode, sender: string, operation: Operation): Promise<Draft> {
  const [{ genesisHash }, { nonce }] = await Promise.all([
    node.fetchJson<HeadResponse>("chain/head"),
    node.fetchJson<SenderResponse>(`chain/senders/${sender}`),
  ]);
  const timestampMs = nodeNowMs();
  const bytes = encodeBody(sender, {
    operation,
    network: genesisHash,
    nonce: BigInt(Math.max(timestampMs, nonce + 1)),
    timestampMs,
    expiresMs: timestampMs + lifeMs,
  });
  return { bytes, hash: `0x${sha256Hex(bytes)}`, body: decodeBody(bytes) };
}

/** Signs a draft and submits it. Rejects with NodeError. */
export async function submitDraft(node: ExploredNode, { bytes }: Draft, { sign }: ValidSigner): Promise<void> {
  const signature = await sign(transactionMessage(bytes));
  await node.post("chain/transactions", {
    transaction: { body: base64Encode(bytes), signature: base64Encode(signature) },
  });
}

/** Decodes the body of a transaction to the JSON form of the API. Throws an Error for other bytes. */
export function decodeBody(bytes: Uint8Array): TransactionBody {
  const message = fromBinary(TransactionBodySchema, bytes);
  const json = toJson(TransactionBodySchema, message, { alwaysEmitImplicit: true });
  return {
    ...(JSON.parse(JSON.stringify(json, plainEnums)) as TransactionBody),
    nonce: Number(message.nonce),
    timestampMs: Number(message.timestampMs),
    expiresMs: Number(message.expiresMs),
  };
}

/** Converts enum values from the JSON of Protobuf to that of the API: `ACCESS_MODE_PUBLIC` to `public`. */
function plainEnums(name: string, value: unknown): unknown {
  switch (name) {
    case "mode":
      return plainEnum(value as string);
    case "permissions":
      return (value as string[]).map(plainEnum);
    default:
      return value;
  }
}

function plainEnum(name: string): string {
  return name.replace(/^ACCESS_(MODE|PERMISSION)_/, "").toLowerCase();
}
