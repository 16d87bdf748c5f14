/** Signed transactions, made of protobuf-es and node:crypto. */
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type Transaction, TransactionBodySchema, TransactionSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { AccessMode } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import type { ZkOperationSchema } from "../../gen/gatehouse/zk/v1/operation_pb.js";
import type { StorageOperationSchema } from "../../gen/gatehouse/storage/v1/operation_pb.js";
import type { TestKey } from "./keys.js";

/** An operation on the commitment tree or a nullifier as a literal. */
export type ZkChange = NonNullable<MessageInitShape<typeof ZkOperationSchema>["operation"]>;

/** A storage operation as a literal. */
export type Operation = NonNullable<MessageInitShape<typeof StorageOperationSchema>["operation"]>;

/** Signs a transaction. */
export function signTransaction(
  key: TestKey,
  nonce: number,
  operation: Operation,
  sender = key.publicKey,
): Transaction {
  return signOperation(key, nonce, { case: "storage", value: { operation } }, sender);
}

/** Signs a transaction that changes the commitment tree or a nullifier. */
export function signZk(key: TestKey, nonce: number, operation: ZkChange): Transaction {
  return signOperation(key, nonce, { case: "zk", value: { operation } }, key.publicKey);
}

/** Adds a commitment. */
export function commit(commitment: string): ZkChange {
  return { case: "addCommitment", value: { commitment } };
}

/** Spends a nullifier without a proof. */
export function spend(nullifierHash: string): ZkChange {
  return { case: "spendNullifier", value: { nullifierHash } };
}

function signOperation(
  key: TestKey,
  nonce: number,
  operation: NonNullable<MessageInitShape<typeof TransactionBodySchema>["operation"]>,
  sender: string,
): Transaction {
  const body = toBinary(
    TransactionBodySchema,
    create(TransactionBodySchema, {
      sender,
      nonce: BigInt(nonce),
      timestampMs: 1_700_000_000_000n,
      operation,
    }),
  );
  return create(TransactionSchema, { body, signature: key.sign(body) });
}

/** An operation that makes a public program with this document. */
export function createPublic(programName: string, json: string): Operation {
  return {
    case: "createProgram",
    value: { programName, data: { data: { case: "json", value: json } }, access: { mode: AccessMode.PUBLIC } },
  };
}
