/** Blocks, transactions and the mempool in the database. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Knex } from "knex";
import { randomBytes } from "node:crypto";
import { type Block, BlockSchema, type Transaction, TransactionSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import type { Database } from "../db/connect.js";
import type { ReadBlock, ReadTransaction } from "./transaction.js";

/** The newest block. */
export interface ChainHead {
  readonly number: bigint;
  /** 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly timestampMs: bigint;
  /** Hash of block 0. */
  readonly genesisHash: string;
  /** As its proposer signed it; both empty for block 0. */
  readonly header: Uint8Array;
  readonly signature: Uint8Array;
}

const noBytes = new Uint8Array();

/** What became of a transaction. */
export type TransactionFate =
  | { readonly status: "pending" }
  | { readonly status: "included"; readonly blockNumber: bigint }
  | { readonly status: "rejected"; readonly reason: string };

/** A transaction of the mempool. */
export interface PendingTransaction {
  readonly hash: string;
  readonly transaction: Transaction;
}

/** Whom transactions are handed to. */
export type RelayTarget = "authority" | "peer";

/** How full the mempool is. */
export interface MempoolSize {
  readonly count: number;
  readonly bytes: number;
}

/** The stored chain. */
export interface ChainStore {
  /** The newest block; undefined while there is none. */
  head(): Promise<ChainHead | undefined>;
  /** The text of block 0; undefined while there is none. */
  genesisText(): Promise<string | undefined>;
  /** Makes block 0. Rejects when there is one. */
  insertGenesis(genesis: { readonly text: string; readonly hash: string; readonly timestampMs: number }): Promise<void>;
  /** A block from 1 on, as it was signed. */
  block(number: bigint): Promise<{ readonly hash: string; readonly block: Block } | undefined>;
  /** {@link block}, found by its hash: 0x and 64 lower-case hex digits. */
  blockByHash(hash: string): Promise<{ readonly hash: string; readonly block: Block } | undefined>;
  /** Number of pending transactions. */
  pendingCount(): Promise<number>;
  mempoolSize(): Promise<MempoolSize>;
  /** Puts a transaction into the mempool; nothing when it is there already. */
  insertPending(transaction: ReadTransaction, bytes: Uint8Array, receivedMs: number): Promise<void>;
  /** The oldest pending transactions. */
  pending(limit: number): Promise<Transaction[]>;
  /** The oldest pending transactions that were not handed to such a node since then, milliseconds since the epoch. */
  pendingToRelay(to: RelayTarget, relayedBeforeMs: number, limit: number): Promise<PendingTransaction[]>;
  /** Remembers that transactions were relayed. */
  markRelayed(to: RelayTarget, hashes: readonly string[], relayedMs: number): Promise<void>;
  /** Hashes of pending transactions that came before then, milliseconds since the epoch. */
  pendingSince(receivedBeforeMs: number, limit: number): Promise<string[]>;
  /** What became of a transaction; undefined when nothing is known of it. */
  fate(hash: string): Promise<TransactionFate | undefined>;
  /** Largest nonce of the sender in a block; undefined when there is none. */
  lastNonce(sender: string): Promise<bigint | undefined>;
  /** Runs `work` in one database transaction: all of its effects, or none when it throws. */
  write<T>(work: (changes: ChainChanges) => Promise<T>): Promise<T>;
  /** Writes as much as a large block does and takes it back. Rejects as that block would. */
  tryWrite(): Promise<void>;
}

/** Changes inside one database transaction. */
export interface ChainChanges {
  /** For the effects of transactions. */
  readonly db: Knex;
  /** Runs `work`; when it throws, its effects are gone and those before stay. */
  attempt<T>(work: (changes: ChainChanges) => Promise<T>): Promise<T>;
  /** Which of these transactions are in a block. */
  included(hashes: readonly string[]): Promise<Set<string>>;
  /** Largest nonce in a block of each of these senders that has one. */
  lastNonces(senders: readonly string[]): Promise<Map<string, bigint>>;
  /** Puts transactions into a block, in their order, and takes them out of the mempool. */
  insertTransactions(transactions: readonly ReadTransaction[], blockNumber: bigint): Promise<void>;
  insertBlock(block: ReadBlock): Promise<void>;
  /** Takes a transaction out of the mempool and remembers why. */
  reject(hash: string, reason: string, rejectedMs: number): Promise<void>;
}

/** Most rows of one statement. */
const chunk = 400;
/** Most rejected transactions that are remembered. */
const maxRejected = 10_000;

/** How much is written to try whether writes go through: too much for any engine to keep in its memory alone. */
const triedBytes = 4 * 1024 * 1024;

/** Builds the store. */
export function createChainStore({ read, write }: Database): ChainStore {
  return {
    async head() {
      const rows = (await read("blocks as head")
        .join("blocks as genesis", "genesis.number", read.raw("0"))
        .orderBy("head.number", "desc")
        .limit(1)
        .select({
          number: "head.number",
          hash: "head.hash",
          timestampMs: "head.timestamp_ms",
          genesisHash: "genesis.hash",
          header: "head.header",
          signature: "head.signature",
        })) as HeadRow[];
      const [row] = rows;
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
      const row = await read<{ number: number; genesis: string }>("blocks").where("number", 0).first("genesis");
      return row?.genesis;
    },
    async insertGenesis({ text, hash, timestampMs }) {
      await write("blocks").insert({ number: 0, hash, timestamp_ms: timestampMs, genesis: text });
    },
    async block(number) {
      const row = (await read("blocks").where("number", Number(number)).first("hash", "header", "signature")) as
        { hash: string; header: Buffer | null; signature: Buffer | null } | undefined;
      if (row?.header == null || row.signature === null) {
        return undefined;
      }
      const transactions = (await read("transactions")
        .where("block_number", Number(number))
        .orderBy("position")
        .select("body", "signature")) as { body: Buffer; signature: Buffer }[];
      const { header, signature } = row;
      return { hash: row.hash, block: create(BlockSchema, { header, signature, transactions }) };
    },
    async blockByHash(hash) {
      const row = (await read("blocks").where({ hash }).first("number")) as { number: number } | undefined;
      return row && (await this.block(BigInt(row.number)));
    },
    async pendingCount() {
      const [row] = (await read("mempool").count({ count: "*" })) as { count: number | string }[];
      return Number(row?.count ?? 0);
    },
    async mempoolSize() {
      const [row] = (await read("mempool").select(
        read.raw("count(*) AS count, coalesce(sum(length(bytes)), 0) AS bytes"),
      )) as unknown as { count: number | string; bytes: number | string }[];
      return { count: Number(row?.count ?? 0), bytes: Number(row?.bytes ?? 0) };
    },
    async insertPending({ hash }, bytes, receivedMs) {
      await write("mempool")
        .insert({ hash, bytes: Buffer.from(bytes), received_ms: receivedMs })
        .onConflict("hash")
        .ignore();
    },
    async pending(limit) {
      const rows = (await read("mempool").orderBy(["received_ms", "hash"]).limit(limit).select("bytes")) as {
        bytes: Buffer;
      }[];
      return rows.map(({ bytes }) => fromBinary(TransactionSchema, bytes));
    },
    async pendingToRelay(to, relayedBeforeMs, limit) {
      const rows = (await read("mempool")
        .where(`${to}_ms`, "<", relayedBeforeMs)
        .orderBy(["received_ms", "hash"])
        .limit(limit)
        .select("hash", "bytes")) as { hash: string; bytes: Buffer }[];
      return rows.map(({ hash, bytes }) => ({ hash, transaction: fromBinary(TransactionSchema, bytes) }));
    },
    async markRelayed(to, hashes, relayedMs) {
      for (const some of inChunks(hashes)) {
        await write("mempool")
          .whereIn("hash", some)
          .update({ [`${to}_ms`]: relayedMs });
      }
    },
    async pendingSince(receivedBeforeMs, limit) {
      const rows = (await read("mempool")
        .where("received_ms", "<", receivedBeforeMs)
        .orderBy("received_ms")
        .limit(limit)
        .select("hash")) as { hash: string }[];
      return rows.map(({ hash }) => hash);
    },
    async fate(hash) {
      // In the order in which it moves: what is gone from one place has arrived at the next one already.
      if ((await read("mempool").where({ hash }).first("hash")) !== undefined) {
        return { status: "pending" };
      }
      const included = (await read("transactions").where({ hash }).first("block_number")) as
        { block_number: number } | undefined;
      if (included !== undefined) {
        return { status: "included", blockNumber: BigInt(included.block_number) };
      }
      const rejected = (await read("rejected_transactions").where({ hash }).first("reason")) as
        { reason: string } | undefined;
      return rejected && { status: "rejected", reason: rejected.reason };
    },
    lastNonce: (sender) => lastNonce(read, sender),
    write: (work) => write.transaction((transaction) => work(changesIn(transaction))),
    async tryWrite() {
      const enough = new Error("There is room.");
      await write
        .transaction(async (transaction) => {
          await transaction("mempool").insert({ hash: "0", bytes: randomBytes(triedBytes), received_ms: 0 });
          throw enough;
        })
        .catch((error: unknown) => {
          if (error !== enough) {
            throw error;
          }
        });
    },
  };
}

function changesIn(db: Knex): ChainChanges {
  return {
    db,
    attempt: (work) => db.transaction((inner) => work(changesIn(inner))),
    async included(hashes) {
      const found = new Set<string>();
      for (const some of inChunks(hashes)) {
        const rows = (await db("transactions").whereIn("hash", some).select("hash")) as { hash: string }[];
        rows.forEach(({ hash }) => found.add(hash));
      }
      return found;
    },
    async lastNonces(senders) {
      const nonces = new Map<string, bigint>();
      for (const some of inChunks(senders)) {
        const rows = (await db("senders").whereIn("identity", some).select("identity", "nonce")) as SenderRow[];
        rows.forEach(({ identity, nonce }) => nonces.set(identity, BigInt(nonce)));
      }
      return nonces;
    },
    async insertTransactions(transactions, blockNumber) {
      const rows = transactions.map(({ hash, signed }, position) => ({
        hash,
        block_number: Number(blockNumber),
        position,
        body: Buffer.from(signed.body),
        signature: Buffer.from(signed.signature),
      }));
      for (const some of inChunks(rows)) {
        await db("transactions").insert(some);
      }
      // The last one of each sender has its largest nonce.
      const nonces = new Map(transactions.map(({ body }) => [body.sender, Number(body.nonce)]));
      for (const some of inChunks([...nonces].map(([identity, nonce]) => ({ identity, nonce })))) {
        await db("senders").insert(some).onConflict("identity").merge();
      }
      for (const some of inChunks(transactions.map(({ hash }) => hash))) {
        await db("mempool").whereIn("hash", some).delete();
      }
    },
    async insertBlock({ hash, header, signed }) {
      await db("blocks").insert({
        number: Number(header.number),
        hash,
        previous_hash: header.previousHash,
        timestamp_ms: Number(header.timestampMs),
        header: Buffer.from(signed.header),
        signature: Buffer.from(signed.signature),
      });
    },
    async reject(hash, reason, rejectedMs) {
      await db("mempool").where({ hash }).delete();
      await db("rejected_transactions").insert({ hash, reason, rejected_ms: rejectedMs }).onConflict("hash").merge();
      const [row] = (await db("rejected_transactions").count({ count: "*" })) as { count: number | string }[];
      const surplus = Number(row?.count ?? 0) - maxRejected;
      if (surplus > 0) {
        const oldest = db("rejected_transactions").orderBy("rejected_ms").limit(surplus).select("hash");
        await db("rejected_transactions").whereIn("hash", oldest).delete();
      }
    },
  };
}

interface HeadRow {
  readonly number: number;
  readonly hash: string;
  readonly timestampMs: number;
  readonly genesisHash: string;
  readonly header: Buffer | null;
  readonly signature: Buffer | null;
}

interface SenderRow {
  readonly identity: string;
  readonly nonce: number | string;
}

/** Pieces that every engine takes in one statement. */
function inChunks<T>(items: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(items.length / chunk) }, (_, i) => items.slice(i * chunk, (i + 1) * chunk));
}

async function lastNonce(db: Knex, identity: string): Promise<bigint | undefined> {
  const row = (await db("senders").where({ identity }).first("nonce")) as { nonce: number | string } | undefined;
  return row && BigInt(row.nonce);
}

/** A transaction as the mempool keeps it. */
export function encodeTransaction(transaction: Transaction): Uint8Array {
  return toBinary(TransactionSchema, transaction);
}
