/** Keyset pages of blocks and transactions, latest first. Queries seek by key and never skip rows with OFFSET. */
import type { BlockHeader } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { CorruptionError } from "../../base/errors/corruption.js";
import { addressBytes, addressFrom, targetProgram } from "../../base/program-address.js";
import { fromHex32 } from "../../base/crypto/hash.js";
import type { PreparedQuery, Queries } from "../../db/queries/database.js";
import {
  blockColumns,
  type BlockRow,
  checkBlockRow,
  checkTransactionRow,
  transactionColumns,
  type TransactionRow,
} from "./stored-block.js";
import type { VerifiedTransaction } from "../transactions/transaction.js";

/** Block in a list. */
export interface ListedBlock {
  /** Block hash: 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly header: BlockHeader;
  /** Undefined if the transactions of the block are not retained. */
  readonly transactionCount: number | undefined;
}

/** Position of a transaction in the chain. */
export interface TransactionPosition {
  readonly blockNumber: bigint;
  /** Index within the block, from 0. */
  readonly position: number;
}

/** Index entry of a transaction, before its body is read. */
export interface TransactionEntry extends TransactionPosition {
  /** Size of the body in bytes. */
  readonly bytes: number;
  /** Address of the program that the transaction changes; undefined if it changes none. */
  readonly program: string | undefined;
}

/** Transaction with its body. */
export interface ListedTransaction extends TransactionPosition {
  readonly hash: string;
  readonly blockHash: string;
  /** Timestamp of the block. */
  readonly timestampMs: bigint;
  readonly body: Uint8Array;
}

/** Filter of transactions. Supports no filter, a block, a sender, both of them, or a program. */
export interface TransactionFilter {
  readonly block?: bigint | undefined;
  /** Public key: 0x and 64 lower-case hex digits. */
  readonly sender?: string | undefined;
  /** Address of the program. */
  readonly program?: string | undefined;
}

/**
 * Indexed prefix of a sender's key, in bytes. Collisions of 16 bytes are infeasible, and the caller compares the full
 * key of each result.
 */
const senderBytes = 16;

/** Returns the index columns of a transaction: sender prefix and target program. */
export function listingColumns({ body }: Pick<VerifiedTransaction, "body">) {
  return { sender: fromHex32(body.sender).subarray(0, senderBytes), program: targetProgram(body) ?? null };
}

/** Row of a block, and the position of its last transaction; null if no transactions are stored. */
type SummaryRow = BlockRow & { readonly last_position: number | null };

interface EntryRow {
  readonly block_number: number;
  readonly position: number;
  readonly bytes: number;
  readonly program: Uint8Array | null;
}

/** Row of a transaction, and the columns of its block with the prefix `of_`. */
type ListedRow = TransactionRow & { readonly [Name in keyof BlockRow as `of_${Name}`]: BlockRow[Name] };

export type Listings = ReturnType<typeof createListings>;

/** Creates the lists of stored blocks and transactions. */
export function createListings(db: Queries) {
  const summaries = db.prepare<SummaryRow>(
    `SELECT ${blockColumns.map((name) => `b.${name}`).join(", ")},
      (SELECT max(t.position) FROM transactions t WHERE t.block_number = b.number) AS last_position
      FROM blocks b WHERE b.number > 0 AND b.number < ? ORDER BY b.number DESC LIMIT ?`,
    "list",
  );
  const entries = prepareEntries(db);
  const listed = db.prepare<ListedRow>(
    `SELECT ${transactionColumns.map((name) => `t.${name}`).join(", ")},
      ${blockColumns.map((name) => `b.${name} AS of_${name}`).join(", ")}
      FROM ${db.dialect.list.table}
      JOIN transactions t ON t.block_number = CAST(k.value ->> 0 AS bigint) AND t.position = CAST(k.value ->> 1 AS integer)
      JOIN blocks b ON b.number = t.block_number ORDER BY t.block_number DESC, t.position DESC`,
    "list",
  );

  /** Returns the first block whose transactions are indexed by sender and program. */
  async function indexedFrom(): Promise<bigint> {
    const row = await db.first<{ indexed_from: number }>((sql) => sql("block_bounds").select("indexed_from"));
    return BigInt(row?.indexed_from ?? 1);
  }

  return {
    /** Returns blocks with numbers below the given one, without block 0. */
    async recentBlocks(below: bigint, limit: number): Promise<ListedBlock[]> {
      const rows = await summaries(Number(below), limit);
      return rows.map(({ last_position: last, ...row }) => ({
        hash: row.hash,
        header: checkBlockRow(row.number, row),
        transactionCount: last === null ? undefined : last + 1,
      }));
    },

    /** Returns index entries that match the filter and precede a position, latest first. */
    async transactionEntries(
      filter: TransactionFilter,
      before: TransactionPosition,
      limit: number,
    ): Promise<TransactionEntry[]> {
      const rows = await entries(filter, Number(before.blockNumber), before.position, limit);
      return rows.map(({ block_number: number, position, bytes, program }) => ({
        ...{ blockNumber: BigInt(number), position, bytes },
        program: program === null ? undefined : addressFrom(program),
      }));
    },

    /** Returns the transactions at these positions, latest first. Omits those that were pruned meanwhile. */
    async listedTransactions(positions: readonly TransactionPosition[]): Promise<ListedTransaction[]> {
      const keys = JSON.stringify(positions.map(({ blockNumber, position }) => [Number(blockNumber), position]));
      return positions.length === 0 ? [] : (await listed(keys)).map(toListed);
    },

    /** Checks that the index columns of a block's transactions match their bodies. Throws CorruptionError. */
    async checkListed(number: bigint, transactions: readonly Pick<VerifiedTransaction, "body">[]): Promise<void> {
      const rows = await db.rows<{ sender: Uint8Array | null; program: Uint8Array | null }>((sql) =>
        sql("transactions").where("block_number", Number(number)).orderBy("position").select("sender", "program"),
      );
      const areIndexed = transactions.every((one, i) => {
        const { sender, program } = listingColumns(one);
        return isSame(rows[i]?.sender, sender) && isSame(rows[i]?.program, program);
      });
      if (!areIndexed && number >= (await indexedFrom())) {
        throw new CorruptionError(
          `The transactions of block ${number} in the database are not found by sender and by program.`,
        );
      }
    },

    indexedFrom,
  };
}

/** Returns true if the bytes are equal, or if both are null: a transaction may have no program. */
function isSame(stored: Uint8Array | null | undefined, bytes: Uint8Array | null): boolean {
  return bytes === null
    ? stored === null
    : stored?.length === bytes.length && bytes.every((byte, i) => byte === stored[i]);
}

/** Prepares one query for each combination of filters. Returns the function that runs the query of a filter. */
function prepareEntries(db: Queries) {
  const prepared = new Map<string, PreparedQuery<EntryRow>>();
  const prepare = (columns: readonly string[]): PreparedQuery<EntryRow> => {
    const value = (column: string): string => (column === "block_number" ? "?" : db.dialect.bytesOf("?"));
    const conditions = columns.map((column) => `${column} = ${value(column)}`);
    const where = [...conditions, "(block_number, position) < (?, ?)"].join(" AND ");
    return db.prepare<EntryRow>(
      `SELECT block_number, position, length(body) AS bytes, program FROM transactions
        WHERE ${where} ORDER BY block_number DESC, position DESC LIMIT ?`,
      "list",
    );
  };
  for (const columns of [[], ["block_number"], ["sender"], ["block_number", "sender"], ["program"]]) {
    prepared.set(columns.join(), prepare(columns));
  }
  return async ({ block, sender, program }: TransactionFilter, ...page: readonly [number, number, number]) => {
    const values = {
      ...(block !== undefined && { block_number: Number(block) }),
      ...(sender !== undefined && { sender: sender.slice(2, 2 + 2 * senderBytes) }),
      ...(program !== undefined && { program: addressBytes(program).toString("hex") }),
    };
    return await prepared.get(Object.keys(values).join())!(...Object.values(values), ...page);
  };
}

function toListed(row: ListedRow): ListedTransaction {
  const block = {
    ...{ number: row.of_number, hash: row.of_hash, previous_hash: row.of_previous_hash, row_hash: row.of_row_hash },
    ...{ timestamp_ms: row.of_timestamp_ms, header: row.of_header, signature: row.of_signature },
  };
  const { timestampMs } = checkBlockRow(row.block_number, block);
  const { body } = checkTransactionRow(row);
  const { hash, position } = row;
  return { hash, blockNumber: BigInt(row.block_number), position, blockHash: block.hash, timestampMs, body };
}
