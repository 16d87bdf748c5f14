/** Spent nullifiers in the database. */
import { DamageError } from "../base/damage.js";
import type { Queries } from "../db/database.js";
import { hashNullifierRow } from "../db/row-hashes.js";
import type { NullifierChanges } from "./nullifiers.js";

interface NullifierRow {
  readonly block_number: number;
  readonly transaction_hash: string;
  readonly row_hash: string;
}

/** Builds the store; inside the transaction of a block, or for reads alone. */
export function createNullifierStore(db: Queries): NullifierChanges {
  const byHash = db.prepare<NullifierRow>(
    "SELECT block_number, transaction_hash, row_hash FROM nullifiers WHERE hash = ?",
  );
  return {
    async find(hash) {
      const [row] = await byHash(hash);
      if (row !== undefined && row.row_hash !== hashNullifierRow({ ...row, hash })) {
        throw new DamageError(`The nullifier ${hash} in the database is not what was stored.`);
      }
      return {
        hash,
        use: row && { blockNumber: BigInt(row.block_number), transactionHash: row.transaction_hash },
      };
    },

    async insert(hash, { blockNumber, transactionHash }) {
      const row = { hash, block_number: Number(blockNumber), transaction_hash: transactionHash };
      await db.run((sql) => sql("nullifiers").insert({ ...row, row_hash: hashNullifierRow(row) }));
    },
  };
}
