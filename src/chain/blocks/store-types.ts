/** Content of the stored chain. */
import type { Block, BlockHeader, Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { markDatabaseError } from "../../base/errors/database-error-kind.js";

/** Latest block. */
export interface ChainHead {
  readonly number: bigint;
  /** Block hash: 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly timestampMs: bigint;
  /** Hash of block 0. */
  readonly genesisHash: string;
  /** Encoded header and signature; both empty for block 0. */
  readonly header: Uint8Array;
  readonly signature: Uint8Array;
  /** Number of the oldest block whose transactions are retained; above `number` if none are. */
  readonly lowestBlock: bigint;
}

/** Signed block with its transactions; never block 0. */
export interface StoredBlock {
  /** Block hash: 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly header: BlockHeader;
  /** Hashes of the transactions, in order. */
  readonly transactionHashes: readonly string[];
  readonly block: Block;
}

/** Identifier of a block: its number, or its hash of 0x and 64 lower-case hex digits. */
export type BlockId = { readonly number: bigint } | { readonly hash: string };

/** Size of a block, known before its transactions are read. */
export interface BlockSize {
  readonly number: bigint;
  readonly transactionCount: number;
  /** Bytes of the header, and of the bodies and signatures of all transactions. */
  readonly bytes: number;
}

/** Status of a transaction. */
export type TransactionStatusInfo =
  | { readonly status: "pending" }
  | { readonly status: "included"; readonly blockNumber: bigint }
  | { readonly status: "rejected"; readonly reason: string };

/** Public summary of a pending transaction. */
export interface PendingSummary {
  /** Transaction hash: 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly sender: string;
  readonly nonce: bigint;
  /** Timestamp that the sender set. */
  readonly timestampMs: bigint;
}

/** Pending transaction without its bytes. */
export interface PendingEntry extends PendingSummary {
  /** Encoded size in bytes, including the signature. */
  readonly sizeBytes: number;
  /** IPv4 address or IPv6 /64 prefix of the source; undefined for transactions of this node. */
  readonly source: string | undefined;
  /** Time of arrival, in milliseconds since the epoch. */
  readonly receivedMs: number;
  readonly expiresMs: number;
  /** Nonce of the preceding transaction of the same sender, as stated by the relaying peer; undefined if not stated. */
  readonly afterNonce: bigint | undefined;
}

/** Record of a transaction that can never be included. */
export interface Rejection {
  readonly hash: string;
  readonly reason: string;
  readonly rejectedMs: number;
  /** Expiry of the transaction; the rejection is retained at least until then. */
  readonly expiresMs: number;
}

/** Reads of pending transactions and of transaction status. */
export interface MempoolView {
  /** Returns the status of a transaction; undefined if it is unknown. */
  transactionStatus(hash: string): Promise<TransactionStatusInfo | undefined>;
  /** Returns the oldest pending transactions. */
  oldestPending(limit: number): Promise<readonly PendingSummary[]>;
  /** Returns a pending transaction; undefined if there is none with this hash. */
  pending(hash: string): Promise<Transaction | undefined>;
}

/** Genesis as block 0. */
export interface GenesisBlock {
  readonly text: string;
  readonly hash: string;
  readonly timestampMs: number;
}

/**
 * Error of a write that the fence rejects. Its message is for the operator; clients get the error of an unavailable
 * database. Reason `lease`: another node holds the writer lease. `latest`: the latest block in the database differs from
 * the one that this node knows. `files`: database files were moved or replaced.
 */
export class FencedError extends Error {
  override readonly name = "FencedError";

  constructor(
    readonly reason: "lease" | "latest" | "files",
    message: string,
  ) {
    super(message);
    markDatabaseError(this);
  }
}
