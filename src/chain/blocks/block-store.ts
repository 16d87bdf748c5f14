/** Database store of blocks and their transactions. */
import type { Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { CorruptionError } from "../../base/errors/corruption.js";
import { insertRows } from "../../db/rows/bulk-changes.js";
import type { DatabasePart, Queries } from "../../db/queries/database.js";
import { hashBlockRow, hashTransactionRow } from "../../db/rows/row-hashes.js";
import { tryWrite } from "../../db/rows/write-probe.js";
import { blockKinds, blockValues, toHex } from "./header-store.js";
import { listingColumns } from "./listing-store.js";
import { createSenderStore } from "./sender-store.js";
import {
  type BlockId,
  type BlockSize,
  type ChainHead,
  FencedError,
  type GenesisBlock,
  type StoredBlock,
} from "./store-types.js";
import {
  blockColumns,
  type BlockRow,
  checkBlockRow,
  checkStoredBlock,
  checkTransactionRow,
  notSigned,
  transactionColumns,
  type TransactionRow,
} from "./stored-block.js";
import type { VerifiedBlock, VerifiedTransaction } from "../transactions/transaction.js";

/** Row of any block, including block 0, which has no header. */
type AnyBlockRow = Omit<BlockRow, "header" | "signature"> & {
  readonly header: Buffer | null;
  readonly signature: Buffer | null;
};

/** Columns of an inserted transaction, with their types. */
const transactionKinds = {
  ...({ hash: "text", block_number: "integer", position: "integer", body: "bytes", signature: "bytes" } as const),
  ...({ row_hash: "text", sender: "bytes", program: "bytes" } as const),
};

const noBytes = new Uint8Array();

export type BlockStore = ReturnType<typeof createBlockStore>;

/** Creates the reads of blocks. */
export function createBlockStore(db: Queries) {
  async function findSigned(blockNumber: number): Promise<BlockRow | undefined> {
    const row = await db.first<AnyBlockRow>((sql) => sql("blocks").where("number", blockNumber).select(blockColumns));
    return row !== undefined && isSigned(row) ? row : undefined;
  }

  async function lowestBlock(): Promise<bigint> {
    const row = await db.first<{ lowest_block: number }>((sql) => sql("block_bounds").select("lowest_block"));
    return BigInt(row?.lowest_block ?? 1);
  }

  /** Returns a column of block 0, even during a snapshot sync. */
  async function genesisColumn(name: "genesis" | "hash"): Promise<string | undefined> {
    const row = await db.first<Record<string, string>>((sql) => sql("blocks").where("number", 0).select(name));
    return row?.[name];
  }

  return {
    /** Returns the latest block; undefined if there is none, and during a snapshot sync. */
    async head(): Promise<ChainHead | undefined> {
      const row = await db.first<AnyBlockRow & { readonly genesis_hash: string; readonly lowest_block: number }>(
        (sql) =>
          sql("blocks as head")
            .join("blocks as genesis", "genesis.number", sql.raw("0"))
            .join("block_bounds as bounds", "bounds.id", sql.raw("1"))
            .whereNotExists(sql("snapshot_join").select("id"))
            .orderBy("head.number", "desc")
            .select(
              ...blockColumns.map((name) => `head.${name}`),
              "genesis.hash as genesis_hash",
              "bounds.lowest_block",
            ),
      );
      if (row === undefined) {
        return undefined;
      }
      if (isSigned(row)) {
        checkBlockRow(row.number, row);
      } else if (row.row_hash !== hashBlockRow(row)) {
        throw notSigned(row.number);
      }
      return {
        number: BigInt(row.number),
        hash: row.hash,
        timestampMs: BigInt(row.timestamp_ms),
        genesisHash: row.genesis_hash,
        header: row.header ?? noBytes,
        signature: row.signature ?? noBytes,
        lowestBlock: BigInt(row.lowest_block),
      };
    },

    /** Returns the genesis text of block 0; undefined if there is none. */
    genesisText: () => genesisColumn("genesis"),
    /** Returns the hash of block 0; undefined if there is none. */
    genesisHash: () => genesisColumn("hash"),

    /** Returns a block; undefined if it does not exist or if its transactions are not retained. */
    async block(number: bigint): Promise<StoredBlock | undefined> {
      const blockNumber = Number(number);
      const row = await findSigned(blockNumber);
      if (row === undefined) {
        return undefined;
      }
      const transactions = await db.rows<TransactionRow>((sql) =>
        sql("transactions").where("block_number", blockNumber).orderBy("position").select(transactionColumns),
      );
      if (transactions.length === 0 && number < (await lowestBlock())) {
        return undefined;
      }
      return checkStoredBlock(blockNumber, row, transactions);
    },

    /** Returns the number of the oldest block whose transactions are retained. */
    lowestBlock,

    /** Returns a signed header with its hash; undefined for block 0, and if the block does not exist. */
    async header(number: bigint): Promise<Pick<BlockRow, "hash" | "header" | "signature"> | undefined> {
      const row = await findSigned(Number(number));
      if (row === undefined) {
        return undefined;
      }
      checkBlockRow(Number(number), row);
      const { hash, header, signature } = row;
      return { hash, header, signature };
    },

    /** Returns the size of a block; undefined if it does not exist, and for block 0. */
    async blockSize(id: BlockId): Promise<BlockSize | undefined> {
      const row = await db.first<{ number: number; count: number; bytes: number }>((sql) =>
        sql("blocks as b")
          .leftJoin("transactions as t", "t.block_number", "b.number")
          .where("hash" in id ? { "b.hash": id.hash } : { "b.number": Number(id.number) })
          .whereNotNull("b.header")
          .groupBy("b.number")
          .select("b.number as number")
          .count({ count: "t.hash" })
          .select(sql.raw("length(b.header) + coalesce(sum(length(t.body) + length(t.signature)), 0) AS bytes")),
      );
      return row && { number: BigInt(row.number), transactionCount: row.count, bytes: row.bytes };
    },

    /** Returns the number of the block that includes a transaction; undefined if there is none. */
    async blockOf(hash: string): Promise<bigint | undefined> {
      const row = await db.first<Omit<TransactionRow, "body">>((sql) =>
        sql("transactions")
          .where({ hash })
          .select(transactionColumns.filter((name) => name !== "body")),
      );
      if (row !== undefined && row.row_hash !== hashTransactionRow(row)) {
        throw new CorruptionError(`The position of transaction ${hash} in the database is corrupt.`);
      }
      return row && BigInt(row.block_number);
    },

    /** Returns a transaction that is in a block; undefined if there is none. */
    async transaction(hash: string): Promise<Transaction | undefined> {
      const row = await db.first<TransactionRow>((sql) =>
        sql("transactions").where({ hash }).select(transactionColumns),
      );
      return row && checkTransactionRow(row);
    },

    /** Returns the hashes of those transactions that are in a block. */
    included: (hashes: readonly string[]) => findIncluded(db, hashes),

    /**
     * Returns the highest block number, without verifying the row. Limited to the number of rows, so a corrupt number
     * cannot make a scan endless.
     */
    async latestNumber(): Promise<bigint> {
      const row = await db.first<{ last: number | null; count: number }>((sql) =>
        sql("blocks").max({ last: "number" }).count({ count: "number" }),
      );
      return BigInt(Math.min(row?.last ?? 0, row?.count ?? 0));
    },

    /** Checks that no transaction has a block number outside of the stored blocks. Throws CorruptionError. */
    async checkTransactionBlocks(): Promise<void> {
      const [row] = await db.rows<{ first: number | null; last: number | null; head: number | null }>((sql) =>
        sql.raw(`SELECT (SELECT min(block_number) FROM transactions) AS first,
          (SELECT max(block_number) FROM transactions) AS last, (SELECT max(number) FROM blocks) AS head`),
      );
      const { first, last, head } = row!;
      if (first !== null && (first < 1 || last! > (head ?? 0))) {
        throw new CorruptionError("The database has transactions of blocks that it does not have.");
      }
    },
  };
}

/**
 * Returns true for signed blocks, false for block 0. Throws CorruptionError for a later block without header or
 * signature.
 */
function isSigned(row: AnyBlockRow): row is AnyBlockRow & BlockRow {
  if (row.number > 0 && (row.header === null || row.signature === null)) {
    throw notSigned(row.number);
  }
  return row.number > 0;
}

async function findIncluded(db: Queries, hashes: readonly string[]): Promise<Set<string>> {
  const { list } = db.dialect;
  const find = db.prepare<{ hash: string }>(
    `SELECT t.hash FROM ${list.table} CROSS JOIN transactions AS t WHERE t.hash = ${list.text}`,
  );
  const rows = hashes.length === 0 ? [] : await find(JSON.stringify(hashes));
  return new Set(rows.map(({ hash }) => hash));
}

/** Writes a row as large as that of a large block, then rolls back. */
export async function tryBlockWrite({ transaction }: Pick<DatabasePart, "transaction">): Promise<void> {
  const row = { hash: "0", block_number: -1, position: 0, signature: Buffer.alloc(0) };
  await tryWrite(transaction, "transactions", (body) => ({ ...row, body }));
}

export type BlockChanges = ReturnType<typeof createBlockChanges>;

/** Creates the changes to blocks, inside one database transaction. */
export function createBlockChanges(db: Queries) {
  const senders = createSenderStore(db);
  const findLatest = db.prepare<{ number: number; hash: string }>(
    "SELECT number, hash FROM blocks ORDER BY number DESC LIMIT 1",
  );
  return {
    /** Returns true if the transaction is still usable. Some engines abort a transaction after a failed query. */
    async isUsable(): Promise<boolean> {
      return await db
        .rows((sql) => sql.raw("SELECT 1"))
        .then(() => true)
        .catch(() => false);
    },

    /** Inserts block 0. Rejects if there is one. */
    async insertGenesis({ text, hash, timestampMs }: GenesisBlock): Promise<void> {
      const row = { number: 0, hash, previous_hash: null, timestamp_ms: timestampMs, signature: null };
      await db.run((sql) => sql("blocks").insert({ ...row, genesis: text, row_hash: hashBlockRow(row) }));
    },

    /** Returns the hashes of those transactions that are in a block. */
    included: (hashes: readonly string[]) => findIncluded(db, hashes),
    /** Returns the highest nonce in a block of each given sender that has one. */
    lastNonces: (identities: readonly string[]) => senders.lastNonces(identities),

    insertBlock: (block: VerifiedBlock) => insertRows(db, "blocks", blockKinds, [blockValues(block)]),

    /** Throws a FencedError unless this is the latest block in the database. */
    async checkLatest({ number, hash }: Pick<ChainHead, "number" | "hash">): Promise<void> {
      const latest = (await findLatest())[0];
      if (latest?.hash !== hash) {
        const found =
          latest === undefined ? "The database has no block" : `The latest block in the database is ${latest.number}`;
        const hashes = latest === undefined ? hash : `${latest.hash}, ${hash}`;
        throw new FencedError(
          "latest",
          `${found}, but this node has created or applied ${number} (${hashes}): something else removed blocks from the ` +
            "database, or added them. Nothing is written; stop the node and restore the database.",
        );
      }
    },

    /** Inserts the transactions of a block, in order, and saves the nonces of their senders. */
    async insertTransactions(transactions: readonly VerifiedTransaction[], blockNumber: bigint): Promise<void> {
      const rows = transactions.map(({ hash, signed, body }, position) => {
        const row = { hash, block_number: Number(blockNumber), position, signature: signed.signature };
        const { sender, program } = listingColumns({ body });
        return [
          ...[hash, row.block_number, position, toHex(signed.body), toHex(signed.signature), hashTransactionRow(row)],
          ...[toHex(sender), program && toHex(program)],
        ];
      });
      await insertRows(db, "transactions", transactionKinds, rows);
      // Nonces of a sender increase, so the last entry in the map is the largest.
      await senders.saveNonces(new Map(transactions.map(({ body }) => [body.sender, body.nonce])));
    },
  };
}
