/** Signs transactions without a node. */
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type Transaction, TransactionBodySchema, TransactionSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { addressOf, addressText, transactionPrefix } from "../../src/base/crypto/signing-payloads.js";
import { sha256Hex, utf8ToBytes } from "./bytes.js";
import { type Signer, validateSigner } from "./signer.js";

/** Operation of a transaction in the form of the API, as the builders create it. */
export type Operation = NonNullable<MessageInitShape<typeof TransactionBodySchema>["operation"]>;

/** Content of a transaction, except the sender. */
export interface TransactionContent {
  readonly operation: Operation;
  /** Network of the transaction: hash of its genesis, 0x and 64 lower-case hex digits. */
  readonly network: string;
  /** Nonce, larger than every nonce of the sender in a block; at most 2^53 - 1. */
  readonly nonce: bigint;
  /** Creation time in milliseconds since the epoch. Default: now. */
  readonly timestampMs?: number | undefined;
  /**
   * Expiry in milliseconds since the epoch, at most one hour ahead; no later block includes it. Default: in ten
   * minutes.
   */
  readonly expiresMs?: number | undefined;
}

/** Signed transaction, which any party may submit. */
export interface SignedTransaction {
  /** Hash of the transaction: 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly nonce: bigint;
  /** Address of the program that it creates or changes; undefined if there is none. */
  readonly storageAddress: string | undefined;
  readonly transaction: Transaction;
}

const defaultLifeMs = 600_000;

export async function signTransaction(signer: Signer, content: TransactionContent): Promise<SignedTransaction> {
  const { publicKey, sign } = validateSigner(signer);
  const body = encodeBody(publicKey, content);
  const signature = await sign(transactionMessage(body));
  return {
    hash: `0x${sha256Hex(body)}`,
    nonce: content.nonce,
    storageAddress: targetProgram(content.operation, publicKey, content.nonce),
    // Copy the signature, because its buffer may be shared or reused.
    transaction: create(TransactionSchema, { body, signature: Uint8Array.from(signature) }),
  };
}

/** Encodes the body of a transaction, whose SHA-256 is its hash. */
export function encodeBody(sender: string, content: TransactionContent): Uint8Array<ArrayBuffer> {
  const { operation, network, nonce, timestampMs = Date.now(), expiresMs = Date.now() + defaultLifeMs } = content;
  return toBinary(
    TransactionBodySchema,
    create(TransactionBodySchema, {
      sender,
      nonce,
      timestampMs: BigInt(timestampMs),
      network,
      expiresMs: BigInt(expiresMs),
      operation,
    }),
  );
}

/** Returns the address of a program, which its creation determines: `stor-` and 40 lower-case hex digits. */
export function programAddress(owner: string, name: string, nonce: bigint, salt = ""): string {
  return addressOf(sha256Hex(addressText(owner, name, nonce, salt)));
}

/** Returns the bytes that the sender of a body signs. */
export function transactionMessage(body: Uint8Array): Uint8Array {
  const prefix = utf8ToBytes(transactionPrefix);
  const message = new Uint8Array(prefix.length + body.length);
  message.set(prefix);
  message.set(body, prefix.length);
  return message;
}

function targetProgram(operation: Operation, sender: string, nonce: bigint): string | undefined {
  const change = operation.case === "storage" ? operation.value.operation : undefined;
  if (change?.case === undefined) {
    return undefined;
  }
  if (change.case === "createProgram") {
    return programAddress(sender, change.value.programName ?? "", nonce, change.value.salt);
  }
  return change.value.storageAddress;
}
