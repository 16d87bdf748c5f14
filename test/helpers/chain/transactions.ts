/** Signed transactions, created with protobuf-es and node:crypto. */
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  type Transaction,
  TransactionBodySchema,
  TransactionSchema,
} from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { AccessMode } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import type { ZkOperationSchema } from "../../../gen/gatehouse/zk/v1/operation_pb.js";
import type { StorageOperationSchema } from "../../../gen/gatehouse/storage/v1/operation_pb.js";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { transactionMessage, type ChainRules } from "../../../src/chain/transactions/transaction.js";
import { checkOperation } from "../../../src/node/chain/transaction-executor.js";
import type { PlainRequest } from "../wire/plain-client.js";
import { genesisOf, type TestKey, testKey } from "./keys.js";

/** An operation on the commitment tree or a nullifier as a literal. */
export type ZkChange = NonNullable<MessageInitShape<typeof ZkOperationSchema>["operation"]>;

/** A storage operation as a literal. */
export type Operation = NonNullable<MessageInitShape<typeof StorageOperationSchema>["operation"]>;

/** Fields of a transaction except its operation. */
export interface SigningOptions {
  /** The sender; by default the key that signs. */
  readonly sender?: string;
  /** By default {@link testNetwork}. */
  readonly network?: string;
  /** By default in ten minutes. */
  readonly expiresMs?: number;
}

/** Hash of the genesis whose only authority is test key 1. */
export const testNetwork = sha256(genesisOf(testKey(1)));

/** Returns the rules of a network, with all checks of the node. */
export function rulesOf(network = testNetwork): ChainRules {
  return { network, checkOperation };
}

/** Signs a transaction. */
export function signTransaction(
  key: TestKey,
  nonce: number,
  operation: Operation,
  options: SigningOptions = {},
): Transaction {
  return signOperation(key, nonce, { case: "storage", value: { operation } }, options);
}

/** Signs a transaction that changes the commitment tree or a nullifier. */
export function signZk(key: TestKey, nonce: number, operation: ZkChange, options: SigningOptions = {}): Transaction {
  return signOperation(key, nonce, { case: "zk", value: { operation } }, options);
}

/** Returns an operation that adds a commitment. */
export function commit(commitment: string): ZkChange {
  return { case: "addCommitment", value: { commitment } };
}

/** Returns an operation that spends a nullifier without a proof. */
export function spend(nullifierHash: string): ZkChange {
  return { case: "spendNullifier", value: { nullifierHash } };
}

function signOperation(
  key: TestKey,
  nonce: number,
  operation: NonNullable<MessageInitShape<typeof TransactionBodySchema>["operation"]>,
  { sender = key.publicKey, network = testNetwork, expiresMs = Date.now() + 600_000 }: SigningOptions,
): Transaction {
  const body = toBinary(
    TransactionBodySchema,
    create(TransactionBodySchema, {
      sender,
      nonce: BigInt(nonce),
      timestampMs: 1_700_000_000_000n,
      network,
      expiresMs: BigInt(expiresMs),
      operation,
    }),
  );
  return create(TransactionSchema, { body, signature: key.sign(transactionMessage(body)) });
}

/** Returns the plain request that submits a transaction. */
export function submission({ body, signature }: Pick<Transaction, "body" | "signature">): PlainRequest {
  const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
  return {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ transaction: { body: base64(body), signature: base64(signature) } }),
  };
}

/** Returns an operation that creates a public program with this document. */
export function createPublic(programName: string, json: string): Operation {
  return {
    case: "createProgram",
    value: { programName, data: { data: { case: "json", value: json } }, access: { mode: AccessMode.PUBLIC } },
  };
}
