/** Blocks, and the transactions in them, in the database. */
import { create } from "@bufbuild/protobuf";
import { randomBytes } from "node:crypto";
import { BlockSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { inChunks } from "../db/chunks.js";
import type { DatabasePart, Queries } from "../db/database.js";
import { FencedError } from "./fenced-error.js";
import type { Blocks, ChainHead } from "./store.js";
import type { ReadBlock, ReadTransaction } from "./transaction.js";

/** The stored blocks. */
export type BlockStore = Omit<Blocks, "insertGenesis">;

/** Blocks as they are stored; inside one transaction, or each change by itself. */
export interface BlockChanges extends Pick<Blocks, "insertGenesis" | "included"> {
  insertBlock(block: ReadBlock): Promise<void>;
  /** Throws a FencedError unless this is the newest block. */
  checkNewest(block: Pick<ChainHead, "number" | "hash">): Promise<void>;
  /** Puts transactions into a block, in their order. */
  insertTransactions(transactions: readonly ReadTransaction[], blockNumber: bigint): Promise<void>;
}

interface HeadRow {
  readonly number: number;
  readonly hash: string;
  readonly timestampMs: number;
  readonly genesisHash: string;
  readonly header: Buffer | null;
  readonly signature: Buffer | null;
}

interface BlockRow {
  readonly hash: string;
  readonly header: Buffer | null;
  readonly signature: Buffer | null;
}

interface WeightRow {
  readonly number: number;
  readonly count: number;
  readonly bytes: number;
}

const noBytes = new Uint8Array();
/** How much is written to try whether writes go through: too much for any engine to keep in its memory alone. */
const triedBytes = 4 * 1024 * 1024;

/** Builds the reads. */
export function createBlockStore(db: Queries): BlockStore {
  return {
    async head() {
      const row = await db.first<HeadRow>((sql) =>
        sql("blocks as head")
          .join("blocks as genesis", "genesis.number", sql.raw("0"))
          .orderBy("head.number", "desc")
          .select({
            number: "head.number",
            hash: "head.hash",
            timestampMs: "head.timestamp_ms",
            genesisHash: "genesis.hash",
            header: "head.header",
            signature: "head.signature",
          }),
      );
      return (
        row && {
          ...row,
          number: BigInt(row.number),
          timestampMs: BigInt(row.timestampMs),
          header: row.header ?? noBytes,
          signature: row.signature ?? noBytes,
        }
      );
    },

    async genesisText() {
      const row = await db.first<{ genesis: string }>((sql) => sql("blocks").where("number", 0).select("genesis"));
      return row?.genesis;
    },

    async block(number) {
      const row = await db.first<BlockRow>((sql) =>
        sql("blocks").where("number", Number(number)).select("hash", "header", "signature"),
      );
      if (row?.header == null || row.signature === null) {
        return undefined;
      }
      const transactions = await db.rows<{ body: Buffer; signature: Buffer }>((sql) =>
        sql("transactions").where("block_number", Number(number)).orderBy("position").select("body", "signature"),
      );
      const { hash, header, signature } = row;
      return { hash, block: create(BlockSchema, { header, signature, transactions }) };
    },

    async header(number) {
      const row = await db.first<BlockRow>((sql) =>
        sql("blocks").where("number", Number(number)).select("hash", "header", "signature"),
      );
      return row?.header == null || row.signature === null
        ? undefined
        : { hash: row.hash, header: row.header, signature: row.signature };
    },

    async weighBlock(by) {
      const row = await db.first<WeightRow>((sql) =>
        sql("blocks as b")
          .leftJoin("transactions as t", "t.block_number", "b.number")
          .where("hash" in by ? { "b.hash": by.hash } : { "b.number": Number(by.number) })
          .whereNotNull("b.header")
          .groupBy("b.number")
          .select("b.number as number")
          .count({ count: "t.hash" })
          .select(sql.raw("length(b.header) + coalesce(sum(length(t.body) + length(t.signature)), 0) AS bytes")),
      );
      return row && { number: BigInt(row.number), transactionCount: row.count, bytes: row.bytes };
    },

    async blockOf(hash) {
      const row = await db.first<{ block_number: number }>((sql) =>
        sql("transactions").where({ hash }).select("block_number"),
      );
      return row && BigInt(row.block_number);
    },

    included: (hashes) => findIncluded(db, hashes),
  };
}

async function findIncluded(db: Queries, hashes: readonly string[]): Promise<Set<string>> {
  const found = new Set<string>();
  for (const some of inChunks(hashes)) {
    const rows = await db.rows<{ hash: string }>((sql) => sql("transactions").whereIn("hash", some).select("hash"));
    rows.forEach(({ hash }) => found.add(hash));
  }
  return found;
}

/** Writes as much as a large block does and takes it back. Rejects as that block would. */
export async function tryWrite({ transaction }: Pick<DatabasePart, "transaction">): Promise<void> {
  const enough = new Error("There is room.");
  const tried = {
    ...{ hash: "0", block_number: -1, position: 0 },
    ...{ body: randomBytes(triedBytes), signature: Buffer.alloc(0) },
  };
  await transaction(async (db) => {
    await db.run((sql) => sql("transactions").insert(tried));
    throw enough;
  }).catch((error: unknown) => {
    if (error !== enough) {
      throw error;
    }
  });
}

/** Builds the changes. */
export function createBlockChanges(db: Queries): BlockChanges {
  return {
    async insertGenesis({ text, hash, timestampMs }) {
      await db.run((sql) => sql("blocks").insert({ number: 0, hash, timestamp_ms: timestampMs, genesis: text }));
    },

    included: (hashes) => findIncluded(db, hashes),

    async insertBlock({ hash, header, signed }) {
      await db.run((sql) =>
        sql("blocks").insert({
          number: Number(header.number),
          hash,
          previous_hash: header.previousHash,
          timestamp_ms: Number(header.timestampMs),
          header: Buffer.from(signed.header),
          signature: Buffer.from(signed.signature),
        }),
      );
    },

    async checkNewest({ number, hash }) {
      const newest = await db.first<{ number: number; hash: string }>((sql) =>
        sql("blocks").orderBy("number", "desc").select("number", "hash"),
      );
      if (newest?.hash !== hash) {
        throw new FencedError("newest", describeNewest(newest, { number, hash }));
      }
    },

    async insertTransactions(transactions, blockNumber) {
      const rows = transactions.map(({ hash, signed }, position) => ({
        hash,
        block_number: Number(blockNumber),
        position,
        body: Buffer.from(signed.body),
        signature: Buffer.from(signed.signature),
      }));
      await db.runAll((sql) => inChunks(rows).map((some) => sql("transactions").insert(some)));
    },
  };
}

function describeNewest(
  newest: { readonly number: number; readonly hash: string } | undefined,
  known: Pick<ChainHead, "number" | "hash">,
): string {
  const found =
    newest === undefined ? "The database has no block" : `The newest block in the database is ${newest.number}`;
  const hashes = newest === undefined ? known.hash : `${newest.hash}, ${known.hash}`;
  return (
    `${found}, and this node has made or applied ${known.number} (${hashes}): blocks were taken out of the ` +
    "database, or put into it, by something else. Nothing is written; stop the node and restore the database."
  );
}
