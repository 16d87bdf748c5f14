/** Signs transactions; no node is needed for it. */
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type Transaction, TransactionBodySchema, TransactionSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { addressOf, addressText, transactionPrefix } from "../../src/base/crypto/signing-payloads.js";
import { sha256Hex, utf8ToBytes } from "./bytes.js";
import { type Signer, toKnownSigner } from "./signer.js";

/** What a transaction does, as the contract has it; the builders make it. */
export type Operation = NonNullable<MessageInitShape<typeof TransactionBodySchema>["operation"]>;

/** What a transaction says, beside who signs it. */
export interface TransactionContent {
  readonly operation: Operation;
  /** The network that it is for: hash of its genesis, 0x and 64 lower-case hex digits. */
  readonly network: string;
  /** Larger than every nonce of the sender in a block; at most 2^53 - 1. */
  readonly nonce: bigint;
  /** Milliseconds since the epoch when it was made; now when left out. */
  readonly timestampMs?: number | undefined;
  /** Milliseconds since the epoch after which no block holds it, at most an hour ahead; in ten minutes when left out. */
  readonly expiresMs?: number | undefined;
}

/** A transaction that can be handed in, by whoever has it. */
export interface SignedTransaction {
  /** Its name on the chain: 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly nonce: bigint;
  /** The program that it makes or changes; undefined where it does neither. */
  readonly storageAddress: string | undefined;
  readonly transaction: Transaction;
}

const usualLifeMs = 600_000;

/** Signs one. */
export async function signTransaction(signer: Signer, content: TransactionContent): Promise<SignedTransaction> {
  const { operation, network, nonce, timestampMs = Date.now(), expiresMs = Date.now() + usualLifeMs } = content;
  const { publicKey, sign } = toKnownSigner(signer);
  const body = toBinary(
    TransactionBodySchema,
    create(TransactionBodySchema, {
      sender: publicKey,
      nonce,
      timestampMs: BigInt(timestampMs),
      network,
      expiresMs: BigInt(expiresMs),
      operation,
    }),
  );
  const signature = await sign(transactionMessage(body));
  return {
    hash: `0x${sha256Hex(body)}`,
    nonce,
    storageAddress: touchedProgram(operation, publicKey, nonce),
    // A signature may stand in memory that it shares with others.
    transaction: create(TransactionSchema, { body, signature: Uint8Array.from(signature) }),
  };
}

/** Address of a program, which its creation decides: `stor-` and 40 lower-case hex digits. */
export function programAddress(owner: string, name: string, nonce: bigint, salt = ""): string {
  return addressOf(sha256Hex(addressText(owner, name, nonce, salt)));
}

/** What a sender signs. */
function transactionMessage(body: Uint8Array): Uint8Array {
  const prefix = utf8ToBytes(transactionPrefix);
  const message = new Uint8Array(prefix.length + body.length);
  message.set(prefix);
  message.set(body, prefix.length);
  return message;
}

function touchedProgram(operation: Operation, sender: string, nonce: bigint): string | undefined {
  const change = operation.case === "storage" ? operation.value.operation : undefined;
  if (change?.case === undefined) {
    return undefined;
  }
  if (change.case === "createProgram") {
    return programAddress(sender, change.value.programName ?? "", nonce, change.value.salt);
  }
  return change.value.storageAddress;
}
