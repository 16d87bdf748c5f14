/** Spent nullifiers in the database. */
import { CorruptionError } from "../base/errors/corruption.js";
import { prepareBatch } from "../db/rows/batch.js";
import type { Queries } from "../db/queries/database.js";
import { hashNullifierRow, type NullifierColumns } from "../db/rows/row-hashes.js";
import type { WriteBuffer } from "../db/rows/write-buffer.js";
import type { NullifierChanges, Nullifiers, NullifierUse } from "./nullifiers.js";

type NullifierRow = NullifierColumns & { readonly row_hash: string };

export function createNullifierStore(db: Queries): Nullifiers {
  const byHash = prepareBatch<Omit<NullifierRow, "hash"> & { readonly slot: number }>(
    db,
    ({ table, slot }) => `SELECT ${slot} AS slot, n.block_number, n.transaction_hash, n.row_hash
      FROM ${table} JOIN nullifiers n ON n.hash = k.value ->> 0`,
  );
  return {
    async find(hash) {
      const row = await byHash([hash]);
      if (row !== undefined) {
        checkNullifier({ ...row, hash });
      }
      return { hash, use: useOf(row) };
    },
  };
}

/** Creates the changes, inside the transaction of a block. They are stored with the block's other rows. */
export function createNullifierChanges(staged: WriteBuffer): NullifierChanges {
  const nullifiers = staged.table<NullifierRow>({
    name: "nullifiers",
    group: "hash",
    within: [],
    columns: { hash: "text", block_number: "integer", transaction_hash: "text", row_hash: "text" },
    changing: [],
    check: checkNullifier,
  });
  return {
    prefetch: (hashes) => nullifiers.prefetch(hashes),
    find: async (hash) => ({ hash, use: useOf(await nullifiers.get(hash)) }),
    insert(hash, { blockNumber, transactionHash }) {
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
function checkNullifier(row: NullifierRow): void {
  if (row.row_hash !== hashNullifierRow(row)) {
    throw new CorruptionError(`The nullifier ${row.hash} in the database is corrupt.`);
  }
}

function useOf(row: Omit<NullifierRow, "hash"> | undefined): NullifierUse | undefined {
  return row && { blockNumber: BigInt(row.block_number), transactionHash: row.transaction_hash };
}
