/** Used nullifiers in the database. */
import type { Database } from "../db/connect.js";

/** Where a nullifier was used. */
export interface NullifierUse {
  readonly blockNumber: bigint;
  /** 0x and 64 lower-case hex digits. */
  readonly transactionHash: string;
}

/** Reads of used nullifiers. */
export interface Nullifiers {
  /** Where it was used; undefined when it was not. */
  find(hash: string): Promise<NullifierUse | undefined>;
}

/** Reads from the database. */
export function createNullifiers({ read }: Pick<Database, "read">): Nullifiers {
  return {
    async find(hash) {
      const row = (await read("nullifiers").where({ hash }).first("block_number", "transaction_hash")) as
        { block_number: number; transaction_hash: string } | undefined;
      return row && { blockNumber: BigInt(row.block_number), transactionHash: row.transaction_hash };
    },
  };
}
