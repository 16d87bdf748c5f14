/** Spent nullifiers in the database. */
import { CorruptionError } from "../base/errors/corruption.js";
import { prepareBatch } from "../db/rows/batch.js";
import type { Queries } from "../db/queries/database.js";
import { hashNullifierRow, type NullifierColumns } from "../db/rows/row-hashes.js";
import type { WriteBuffer } from "../db/rows/write-buffer.js";

export interface NullifierSearch {
  readonly hash: string;
  /** Block and transaction that spent the nullifier; undefined if it is not spent. */
  readonly use: { readonly blockNumber: bigint; readonly transactionHash: string } | undefined;
}

export interface Nullifiers {
  find(hash: string): NullifierSearch | Promise<NullifierSearch>;
}

type NullifierRow = NullifierColumns & { readonly row_hash: string };

export function createNullifierStore(db: Queries) {
  const byHash = prepareBatch<Omit<NullifierRow, "hash"> & { readonly slot: number }>(
    db,
    ({ table, slot }) => `SELECT ${slot} AS slot, n.block_number, n.transaction_hash, n.row_hash
      FROM ${table} JOIN nullifiers n ON n.hash = k.value ->> 0`,
  );
  return {
    async find(hash: string): Promise<NullifierSearch> {
      const row = await byHash([hash]);
      if (row !== undefined) {
        checkNullifier({ ...row, hash });
      }
      return { hash, use: useOf(row) };
    },
  };
}

/** Spent nullifiers as seen and changed by blocks. */
export type NullifierChanges = ReturnType<typeof createNullifierChanges>;

/** Creates the changes, inside the transaction of a block. They are stored with the block's other rows. */
export function createNullifierChanges(staged: WriteBuffer) {
  const nullifiers = staged.table<NullifierRow>({
    name: "nullifiers",
    group: "hash",
    within: [],
    columns: { hash: "text", block_number: "integer", transaction_hash: "text", row_hash: "text" },
    changing: [],
    check: checkNullifier,
  });
  return {
    prefetch: (hashes: readonly string[]) => nullifiers.prefetch(hashes),
    find: async (hash: string): Promise<NullifierSearch> => ({ hash, use: useOf(await nullifiers.get(hash)) }),
    insert(hash: string, { blockNumber, transactionHash }: NonNullable<NullifierSearch["use"]>): void {
      const row = { hash, block_number: Number(blockNumber), transaction_hash: transactionHash };
      nullifiers.insert({ ...row, row_hash: hashNullifierRow(row) });
    },
  };
}

/**
 * Checks a row against its checksum.
 *
 * @throws CorruptionError
 */
export function checkNullifier(row: NullifierRow): void {
  if (row.row_hash !== hashNullifierRow(row)) {
    throw new CorruptionError(`The nullifier ${row.hash} in the database is corrupt.`);
  }
}

function useOf(row: Omit<NullifierRow, "hash"> | undefined): NullifierSearch["use"] {
  return row && { blockNumber: BigInt(row.block_number), transactionHash: row.transaction_hash };
}
