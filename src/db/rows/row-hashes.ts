/**
 * Checksums that are stored with rows. Each covers the key of the row and every column that is served, so that a change
 * and a swap of rows are both detected. Columns that another hash covers are left out: a header is covered by the hash
 * of the block, a body by the hash of the transaction.
 *
 * Stored rows contain these checksums, so their inputs must not change.
 */
import { hash } from "node:crypto";

/** Boolean column; 0 or 1 on an engine without a boolean type. */
type Flag = boolean | number;

export interface BlockColumns {
  readonly number: number;
  readonly hash: string;
  /** Null for block 0. */
  readonly previous_hash: string | null;
  readonly timestamp_ms: number;
  /** Null for block 0. */
  readonly signature: Uint8Array | null;
}

export interface TransactionColumns {
  readonly hash: string;
  readonly block_number: number;
  readonly position: number;
  readonly signature: Uint8Array;
}

export interface SenderColumns {
  readonly identity: string;
  readonly nonce: number;
}

/** Columns of a program that lists return. */
export interface ProgramEntryColumns {
  readonly address: string;
  readonly owner: string;
  readonly name: string;
  readonly encoding: string;
  readonly mode: string;
  readonly size_bytes: number;
  readonly created_ms: number;
  readonly updated_ms: number;
  readonly deleted: Flag;
}

/** Other columns of the row of a program. */
export interface ProgramRestColumns {
  readonly address: string;
  readonly type: string;
  readonly access: string;
  readonly metadata: string | null;
  readonly in_parts: Flag;
  readonly blinding: string;
}

export interface DocumentColumns {
  readonly address: string;
  readonly data: string;
}

export interface FieldColumns {
  readonly address: string;
  readonly position: number;
  readonly name_json: string;
  readonly type: string;
  readonly items: number | null;
  readonly size_bytes: number;
  readonly text_before: string;
  readonly value: string;
}

export interface ChunkColumns {
  readonly address: string;
  readonly field: number;
  readonly position: number;
  readonly items: number;
  readonly size_bytes: number;
  readonly text: string;
}

export interface RootColumns {
  readonly block_number: number;
  readonly root: string;
  readonly timestamp_ms: number;
  readonly leaf_count: number;
  readonly edge: Uint8Array;
}

export interface NullifierColumns {
  readonly hash: string;
  readonly block_number: number;
  readonly transaction_hash: string;
}

export interface PageColumns {
  readonly tree: string;
  readonly path: string;
  readonly page: Uint8Array;
}

export function hashBlockRow({ number, hash, previous_hash, timestamp_ms, signature }: BlockColumns): string {
  return hashRow("block", number, hash, previous_hash ?? "", timestamp_ms, hex(signature));
}

export function hashTransactionRow({ hash, block_number, position, signature }: TransactionColumns): string {
  return hashRow("transaction", hash, block_number, position, hex(signature));
}

export function hashSenderRow({ identity, nonce }: SenderColumns): string {
  return hashRow("sender", identity, nonce);
}

export function hashProgramEntry(row: ProgramEntryColumns): string {
  const { address, owner, name, encoding, mode, size_bytes, created_ms, updated_ms, deleted } = row;
  return hashRow("program", address, owner, name, encoding, mode, size_bytes, created_ms, updated_ms, Number(deleted));
}

export function hashProgramRest(row: ProgramRestColumns): string {
  const { address, type, access, metadata, in_parts, blinding } = row;
  return hashRow("program's rest", address, type, access, metadata ?? "", Number(in_parts), blinding);
}

export function hashDocumentRow({ address, data }: DocumentColumns): string {
  return hashRow("document", address, data);
}

export function hashFieldRow(row: FieldColumns): string {
  const { address, position, name_json, type, items, size_bytes, text_before, value } = row;
  return hashRow("field", address, position, name_json, type, items ?? "", size_bytes, text_before, value);
}

export function hashChunkRow({ address, field, position, items, size_bytes, text }: ChunkColumns): string {
  return hashRow("chunk", address, field, position, items, size_bytes, text);
}

export function hashRootRow({ block_number, root, timestamp_ms, leaf_count, edge }: RootColumns): string {
  return hashRow("root", block_number, root, timestamp_ms, leaf_count, hex(edge));
}

export function hashNullifierRow({ hash, block_number, transaction_hash }: NullifierColumns): string {
  return hashRow("nullifier", hash, block_number, transaction_hash);
}

export function hashPageRow({ tree, path, page }: PageColumns): string {
  return hashRow("page", tree, path, hex(page));
}

function hex(bytes: Uint8Array | null): string {
  return bytes === null ? "" : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
}

/**
 * Returns the checksum of a stored row, over its key and every column that is served: the first half of SHA-256 as 32
 * hex digits. It detects accidental corruption. It does not detect tampering, because an attacker can recompute it.
 *
 * @param columns values without NUL, which separates them in the hashed text.
 */
function hashRow(...columns: readonly (string | number)[]): string {
  return hash("sha256", columns.join("\0"), "hex").slice(0, 32);
}
