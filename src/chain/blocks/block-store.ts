/** Database store of blocks and their transactions. */
import { CorruptionError } from "../../base/errors/corruption.js";
import { insertRows } from "../../db/rows/bulk-changes.js";
import type { DatabasePart, Queries } from "../../db/queries/database.js";
import { hashBlockRow, hashTransactionRow, type TransactionColumns } from "../../db/rows/row-hashes.js";
import { tryWrite } from "../../db/rows/write-probe.js";
import { FencedError } from "./fenced-error.js";
import { blockKinds, blockValues, toHex } from "./header-store.js";
import { listingColumns } from "./listing-store.js";
import type { BlockId, Blocks, BlockSize, ChainHead } from "./store.js";
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

/** Reads of stored blocks. */
export interface BlockStore extends Omit<Blocks, "insertGenesis"> {
  /** Checks that no transaction has a block number outside of the stored blocks. Throws CorruptionError. */
  checkTransactionBlocks(): Promise<void>;
  /**
   * Returns the highest block number, without verifying the row. Limited to the number of rows, so a corrupt number
   * cannot make a scan endless.
   */
  latestNumber(): Promise<bigint>;
  /** Returns the hash of block 0, even during a snapshot sync. */
  genesisHash(): Promise<string | undefined>;
}

/** Changes to stored blocks, inside one database transaction. */
export interface BlockChanges extends Pick<Blocks, "insertGenesis" | "included"> {
  insertBlock(block: VerifiedBlock): Promise<void>;
  /** Throws a FencedError unless this is the latest block in the database. */
  checkLatest(block: Pick<ChainHead, "number" | "hash">): Promise<void>;
  /** Inserts the transactions of a block, in order. */
  insertTransactions(transactions: readonly VerifiedTransaction[], blockNumber: bigint): Promise<void>;
}

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

interface SizeRow {
  readonly number: number;
  readonly count: number;
  readonly bytes: number;
}

const noBytes = new Uint8Array();

/** Creates the reads of blocks. */
export function createBlockStore(db: Queries): BlockStore {
  return {
    head: () => findHead(db),

    async genesisText() {
      const row = await db.first<{ genesis: string }>((sql) => sql("blocks").where("number", 0).select("genesis"));
      return row?.genesis;
    },

    async block(number) {
      const blockNumber = Number(number);
      const row = await db.first<AnyBlockRow>((sql) => sql("blocks").where("number", blockNumber).select(blockColumns));
      if (row === undefined || !isSigned(row)) {
        return undefined;
      }
      const transactions = await db.rows<TransactionRow>((sql) =>
        sql("transactions").where("block_number", blockNumber).orderBy("position").select(transactionColumns),
      );
      if (transactions.length === 0 && number < (await findLowest(db))) {
        return undefined;
      }
      return checkStoredBlock(blockNumber, row, transactions);
    },

    lowestBlock: () => findLowest(db),

    async header(number) {
      const blockNumber = Number(number);
      const row = await db.first<AnyBlockRow>((sql) => sql("blocks").where("number", blockNumber).select(blockColumns));
      if (row === undefined || !isSigned(row)) {
        return undefined;
      }
      checkBlockRow(blockNumber, row);
      const { hash, header, signature } = row;
      return { hash, header, signature };
    },

    blockSize: (id) => findSize(db, id),

    async blockOf(hash) {
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

    async transaction(hash) {
      const row = await db.first<TransactionRow>((sql) =>
        sql("transactions").where({ hash }).select(transactionColumns),
      );
      return row && checkTransactionRow(row);
    },

    included: (hashes) => findIncluded(db, hashes),

    async latestNumber() {
      const row = await db.first<{ last: number | null; count: number }>((sql) =>
        sql("blocks").max({ last: "number" }).count({ count: "number" }),
      );
      return BigInt(Math.min(row?.last ?? 0, row?.count ?? 0));
    },

    async genesisHash() {
      const row = await db.first<{ hash: string }>((sql) => sql("blocks").where("number", 0).select("hash"));
      return row?.hash;
    },

    async checkTransactionBlocks() {
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

async function findLowest(db: Queries): Promise<bigint> {
  const row = await db.first<{ lowest_block: number }>((sql) => sql("block_bounds").select("lowest_block"));
  return BigInt(row?.lowest_block ?? 1);
}

async function findHead(db: Queries): Promise<ChainHead | undefined> {
  const row = await db.first<AnyBlockRow & { readonly genesis_hash: string; readonly lowest_block: number }>((sql) =>
    sql("blocks as head")
      .join("blocks as genesis", "genesis.number", sql.raw("0"))
      .join("block_bounds as bounds", "bounds.id", sql.raw("1"))
      .whereNotExists(sql("snapshot_join").select("id"))
      .orderBy("head.number", "desc")
      .select(...blockColumns.map((name) => `head.${name}`), "genesis.hash as genesis_hash", "bounds.lowest_block"),
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
}

async function findSize(db: Queries, id: BlockId): Promise<BlockSize | undefined> {
  const row = await db.first<SizeRow>((sql) =>
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
}

async function findIncluded(db: Queries, hashes: readonly string[]): Promise<Set<string>> {
  const { list } = db.dialect;
  const find = db.prepare<{ hash: string }>(
    `SELECT t.hash FROM ${list.table} CROSS JOIN transactions AS t WHERE t.hash = ${list.text}`,
  );
  const rows = hashes.length === 0 ? [] : await find(JSON.stringify(hashes));
  return new Set(rows.map(({ hash }) => hash));
}

/**
 * Writes a row as large as that of a large block, then rolls back. Rejects with the error that such a block would
 * cause.
 */
export async function tryBlockWrite({ transaction }: Pick<DatabasePart, "transaction">): Promise<void> {
  const row = { hash: "0", block_number: -1, position: 0, signature: Buffer.alloc(0) };
  await tryWrite(transaction, "transactions", (body) => ({ ...row, body }));
}

/** Creates the changes to blocks. */
export function createBlockChanges(db: Queries): BlockChanges {
  const findLatest = db.prepare<{ number: number; hash: string }>(
    "SELECT number, hash FROM blocks ORDER BY number DESC LIMIT 1",
  );
  return {
    async insertGenesis({ text, hash, timestampMs }) {
      const row = { number: 0, hash, previous_hash: null, timestamp_ms: timestampMs, signature: null };
      await db.run((sql) => sql("blocks").insert({ ...row, genesis: text, row_hash: hashBlockRow(row) }));
    },

    included: (hashes) => findIncluded(db, hashes),

    insertBlock: (block) => insertRows(db, "blocks", blockKinds, [blockValues(block)]),

    async checkLatest({ number, hash }) {
      const latest = (await findLatest())[0];
      if (latest?.hash !== hash) {
        throw new FencedError("latest", describeLatest(latest, { number, hash }));
      }
    },

    async insertTransactions(transactions, blockNumber) {
      const rows = transactions.map(({ hash, signed, body }, position) => {
        const row: TransactionColumns = {
          hash,
          block_number: Number(blockNumber),
          position,
          signature: signed.signature,
        };
        const { sender, program } = listingColumns({ body });
        return [
          ...[hash, row.block_number, position, toHex(signed.body), toHex(signed.signature), hashTransactionRow(row)],
          ...[toHex(sender), program && toHex(program)],
        ];
      });
      await insertRows(db, "transactions", transactionKinds, rows);
    },
  };
}

function describeLatest(
  latest: { readonly number: number; readonly hash: string } | undefined,
  known: Pick<ChainHead, "number" | "hash">,
): string {
  const found =
    latest === undefined ? "The database has no block" : `The latest block in the database is ${latest.number}`;
  const hashes = latest === undefined ? known.hash : `${latest.hash}, ${known.hash}`;
  return (
    `${found}, but this node has created or applied ${known.number} (${hashes}): something else removed blocks from the ` +
    "database, or added them. Nothing is written; stop the node and restore the database."
  );
}
