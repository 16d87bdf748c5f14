/** Spent nullifiers in the database. */
import type { Knex } from "knex";
import type { Database } from "../db/connect.js";

/** Where a nullifier was spent. */
export interface NullifierUse {
  readonly blockNumber: bigint;
  /** 0x and 64 lower-case hex digits. */
  readonly transactionHash: string;
}

/** What a look for a nullifier gives. */
export interface NullifierSearch {
  readonly hash: string;
  /** Where it was spent; undefined when it was not. */
  readonly use: NullifierUse | undefined;
}

export interface Nullifiers {
  find(hash: string): NullifierSearch | Promise<NullifierSearch>;
}

interface Row {
  readonly block_number: number;
  readonly transaction_hash: string;
}

/** Reads from the database. */
export function createNullifiers({ prepare }: Pick<Database, "prepare">): Nullifiers {
  const byHash = prepare<Row>("SELECT block_number, transaction_hash FROM nullifiers WHERE hash = ?");
  return {
    async find(hash) {
      const [row] = await byHash(hash);
      return { hash, use: row && toUse(row) };
    },
  };
}

/** Where a nullifier was spent, inside the transaction of a block. */
export async function findSpent(db: Knex, hash: string): Promise<NullifierUse | undefined> {
  const row = (await db("nullifiers").where({ hash }).first("block_number", "transaction_hash")) as Row | undefined;
  return row && toUse(row);
}

/** Spends a nullifier inside the transaction of a block. */
export async function insertSpent(db: Knex, hash: string, use: NullifierUse): Promise<void> {
  await db("nullifiers").insert({
    hash,
    block_number: Number(use.blockNumber),
    transaction_hash: use.transactionHash,
  });
}

function toUse({ block_number, transaction_hash }: Row): NullifierUse {
  return { blockNumber: BigInt(block_number), transactionHash: transaction_hash };
}
