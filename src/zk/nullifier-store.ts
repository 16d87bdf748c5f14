/** Spent nullifiers in the database. */
import type { Queries } from "../db/database.js";
import type { NullifierChanges } from "./nullifiers.js";

interface NullifierRow {
  readonly block_number: number;
  readonly transaction_hash: string;
}

/** Builds the store; inside the transaction of a block, or for reads alone. */
export function createNullifierStore(db: Queries): NullifierChanges {
  const byHash = db.prepare<NullifierRow>("SELECT block_number, transaction_hash FROM nullifiers WHERE hash = ?");
  return {
    async find(hash) {
      const [row] = await byHash(hash);
      return {
        hash,
        use: row && { blockNumber: BigInt(row.block_number), transactionHash: row.transaction_hash },
      };
    },

    async insert(hash, { blockNumber, transactionHash }) {
      await db.run((sql) =>
        sql("nullifiers").insert({
          hash,
          block_number: Number(blockNumber),
          transaction_hash: transactionHash,
        }),
      );
    },
  };
}
