/**
 * Integrity checks of stored blocks. The checks are pure and cheap enough for every read: SHA-256 of the header, of the
 * bodies and of a few bytes of each row. Row checksums cover the signatures, which were verified when the block was
 * applied. verify-blocks.ts verifies the signatures again.
 */
import { create } from "@bufbuild/protobuf";
import {
  type BlockHeader,
  BlockSchema,
  type Transaction,
  TransactionSchema,
} from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { CorruptionError } from "../../base/errors/corruption.js";
import { sha256 } from "../../base/crypto/hash.js";
import {
  type BlockColumns,
  hashBlockRow,
  hashTransactionRow,
  type TransactionColumns,
} from "../../db/rows/row-hashes.js";
import type { StoredBlock } from "./store-types.js";
import { decodeHeader, hashOfHashes } from "../transactions/transaction.js";

/** Columns of {@link BlockRow} and of {@link TransactionRow}. */
export const blockColumns = [
  "number",
  "hash",
  "previous_hash",
  "timestamp_ms",
  "header",
  "signature",
  "row_hash",
] as const;
export const transactionColumns = ["hash", "block_number", "position", "body", "signature", "row_hash"] as const;

/** Row of a block; never block 0. */
export interface BlockRow extends BlockColumns {
  readonly header: Uint8Array;
  readonly signature: Uint8Array;
  readonly row_hash: string;
}

/** Row of a transaction in a block. */
export interface TransactionRow extends TransactionColumns {
  readonly body: Uint8Array;
  readonly row_hash: string;
}

/**
 * Checks the row of a block and returns its decoded header.
 *
 * @param expected expected block number.
 * @throws CorruptionError
 */
export function checkBlockRow(expected: number, row: BlockRow): BlockHeader {
  const header = tryDecodeHeader(row.header);
  const isIntact =
    header !== undefined &&
    row.row_hash === hashBlockRow(row) &&
    row.hash === sha256(row.header) &&
    row.number === expected &&
    header.number === BigInt(expected) &&
    header.previousHash === (row.previous_hash ?? "") &&
    header.timestampMs === BigInt(row.timestamp_ms);
  if (!isIntact) {
    throw notSigned(expected);
  }
  return header;
}

/**
 * Checks all rows of a block and returns the block.
 *
 * @param expected expected block number.
 * @param rows rows of the transactions, in order.
 * @throws CorruptionError
 */
export function checkStoredBlock(expected: number, row: BlockRow, rows: readonly TransactionRow[]): StoredBlock {
  const header = checkBlockRow(expected, row);
  const transactionHashes = rows.map(({ body }) => sha256(body));
  const areIntact = rows.every(
    (one, i) =>
      one.hash === transactionHashes[i] &&
      one.block_number === expected &&
      one.position === i &&
      one.row_hash === hashTransactionRow(one),
  );
  if (!areIntact || header.transactionsHash !== hashOfHashes(transactionHashes)) {
    throw new CorruptionError(
      `Block ${expected} in the database does not hold the transactions that its header names; restore the database from a backup, or sync the node again.`,
    );
  }
  const transactions = rows.map(({ body, signature }) => ({ body, signature }));
  const block = create(BlockSchema, { header: row.header, signature: row.signature, transactions });
  return { hash: row.hash, header, transactionHashes, block };
}

/**
 * Checks the row of a transaction and returns the transaction.
 *
 * @throws CorruptionError
 */
export function checkTransactionRow(row: TransactionRow): Transaction {
  if (row.hash !== sha256(row.body) || row.row_hash !== hashTransactionRow(row)) {
    throw new CorruptionError(
      `Transaction ${row.hash} in the database is not the one that was signed; restore the database from a backup, or sync the node again.`,
    );
  }
  return create(TransactionSchema, { body: row.body, signature: row.signature });
}

/** Creates the error for a stored block that differs from the signed one. */
export function notSigned(number: number | bigint): CorruptionError {
  return new CorruptionError(
    `Block ${number} in the database is not the one that was signed; restore the database from a backup, or sync the node again.`,
  );
}

function tryDecodeHeader(bytes: Uint8Array): BlockHeader | undefined {
  try {
    return decodeHeader(bytes);
  } catch {
    return undefined;
  }
}
