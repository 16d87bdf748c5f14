/**
 * Database store of the mempool: pending and rejected transactions. Writes run one at a time, and inserts that wait are
 * batched into one transaction, so that they do not exhaust the connection pool.
 */
import { fromBinary } from "@bufbuild/protobuf";
import { type Transaction, TransactionSchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { sha256 } from "../../base/crypto/hash.js";
import { createSerialQueue } from "../../base/async/serial-queue.js";
import { batch } from "../../db/rows/batch.js";
import { inChunks } from "../../db/rows/chunks.js";
import type { DatabasePart } from "../../db/queries/database.js";
import { tryWrite } from "../../db/rows/write-probe.js";
import type { PendingEntry, Rejection, TransactionStatusInfo } from "./store-types.js";

/** Limit on stored rejections; the oldest are deleted first. */
const maxRejected = 200_000;
/** Limit on transactions inserted in one database transaction. */
const maxInserted = 1_000;
/** Limit on rows of one INSERT statement: each row may exceed 1 MB. */
const maxRowsOfStatement = 8;

/** Row without the transaction bytes. */
interface Row {
  readonly hash: string;
  readonly sender: string;
  readonly nonce: number;
  readonly timestamp_ms: string;
  /** Address of the source; null for transactions of this node. */
  readonly origin: string | null;
  readonly size_bytes: number;
  readonly received_ms: number;
  readonly expires_ms: number;
  readonly after_nonce: number | null;
}

const columns = [
  ...["hash", "sender", "nonce", "timestamp_ms", "origin"],
  ...["size_bytes", "received_ms", "expires_ms", "after_nonce"],
] as const;

export type MempoolStore = ReturnType<typeof createMempoolStore>;

export function createMempoolStore({ read, transaction }: DatabasePart) {
  const enqueue = createSerialQueue();
  const insert = batch<Row & { readonly bytes: Buffer }, true>(async (rows) => {
    await enqueue(() =>
      transaction((db) =>
        db.runAll((sql) =>
          inChunks(rows, maxRowsOfStatement).map((chunk) =>
            sql("pending_transactions").insert(chunk).onConflict("hash").ignore(),
          ),
        ),
      ),
    );
    return rows.map(() => true);
  }, maxInserted);

  return {
    async pendingCount(): Promise<number> {
      const row = await read.first<{ count: number }>((sql) => sql("pending_transactions").count({ count: "*" }));
      return row?.count ?? 0;
    },

    async oldestPending(limit: number): Promise<PendingEntry[]> {
      const rows = await read.rows<Row>((sql) =>
        sql("pending_transactions").orderBy(["received_ms", "hash"]).limit(limit).select(columns),
      );
      return rows.map(entryOf);
    },

    async isPending(hash: string): Promise<boolean> {
      return (await read.first((sql) => sql("pending_transactions").where({ hash }).select("hash"))) !== undefined;
    },

    /** Returns the reason of a rejection; undefined if there was none or its record was deleted. */
    async rejectionOf(hash: string): Promise<string | undefined> {
      const row = await read.first<{ reason: string }>((sql) =>
        sql("rejected_transactions").where({ hash }).select("reason"),
      );
      return row?.reason;
    },

    /** Inserts a pending transaction; does nothing if it exists. */
    async insertPending(entry: PendingEntry, bytes: Uint8Array): Promise<void> {
      await insert({ ...rowOf(entry), bytes: Buffer.from(bytes) });
    },

    /**
     * Returns pending transactions by hash. The value is undefined if the stored bytes are corrupt; missing transactions
     * have no entry.
     */
    async readPending(hashes: readonly string[]): Promise<Map<string, Transaction | undefined>> {
      const found = new Map<string, Transaction | undefined>();
      for (const chunk of inChunks(hashes)) {
        const rows = await read.rows<{ hash: string; bytes: Buffer }>((sql) =>
          sql("pending_transactions").whereIn("hash", chunk).select("hash", "bytes"),
        );
        rows.forEach(({ hash, bytes }) => found.set(hash, decodeStored(hash, bytes)));
      }
      return found;
    },

    /** Removes transactions, those in blocks by hash, and records rejections, atomically. */
    async remove({
      included,
      rejected,
    }: {
      readonly included: readonly string[];
      readonly rejected: readonly Rejection[];
    }): Promise<void> {
      const hashes = [...included, ...rejected.map(({ hash }) => hash)];
      const rows = rejected.map(({ hash, reason, rejectedMs, expiresMs }) => ({
        ...{ hash, reason, rejected_ms: rejectedMs, expires_ms: expiresMs },
      }));
      await enqueue(() =>
        transaction((db) =>
          db.runAll((sql) => [
            ...inChunks(hashes).map((chunk) => sql("pending_transactions").whereIn("hash", chunk).delete()),
            ...inChunks(rows).map((chunk) => sql("rejected_transactions").insert(chunk).onConflict("hash").merge()),
          ]),
        ),
      );
    },

    /** Deletes rejections of transactions that expired before a time, and the oldest above the limit. */
    async deleteOldRejections(expiredBeforeMs: number): Promise<void> {
      await enqueue(() =>
        transaction(async (db) => {
          await db.run((sql) => sql("rejected_transactions").where("expires_ms", "<", expiredBeforeMs).delete());
          const row = await db.first<{ count: number }>((sql) => sql("rejected_transactions").count({ count: "*" }));
          const surplus = (row?.count ?? 0) - maxRejected;
          if (surplus > 0) {
            await db.run((sql) => {
              const oldest = sql("rejected_transactions").orderBy("rejected_ms").limit(surplus).select("hash");
              return sql("rejected_transactions").whereIn("hash", oldest).delete();
            });
          }
        }),
      );
    },

    /**
     * Writes a row as large as that of a large transaction, then rolls back. Rejects with the error that such a
     * transaction would cause.
     */
    async tryWrite(): Promise<void> {
      await enqueue(() => tryWrite(transaction, "pending_transactions", (bytes) => ({ ...emptyRow, bytes })));
    },
  };
}

const emptyRow: Row = {
  hash: "0",
  ...{ sender: "", nonce: 0, timestamp_ms: "0", origin: null },
  ...{ size_bytes: 0, received_ms: 0, expires_ms: 0, after_nonce: null },
};

function rowOf(entry: PendingEntry): Row {
  const { hash, sender, nonce, timestampMs, source, sizeBytes, receivedMs, expiresMs, afterNonce } = entry;
  return {
    ...{ hash, sender, nonce: Number(nonce), timestamp_ms: String(timestampMs), origin: source ?? null },
    ...{ size_bytes: sizeBytes, received_ms: receivedMs, expires_ms: expiresMs },
    after_nonce: afterNonce === undefined ? null : Number(afterNonce),
  };
}

function entryOf(row: Row): PendingEntry {
  const { hash, sender, nonce, timestamp_ms, origin, size_bytes, received_ms, expires_ms, after_nonce } = row;
  return {
    ...{ hash, sender, nonce: BigInt(nonce), timestampMs: BigInt(timestamp_ms), source: origin ?? undefined },
    ...{ sizeBytes: size_bytes, receivedMs: received_ms, expiresMs: expires_ms },
    afterNonce: after_nonce === null ? undefined : BigInt(after_nonce),
  };
}

/**
 * Decodes stored bytes. Returns undefined if another process changed them: they cannot be decoded, or do not match
 * their hash.
 */
function decodeStored(hash: string, bytes: Uint8Array): Transaction | undefined {
  try {
    const transaction = fromBinary(TransactionSchema, bytes);
    return sha256(transaction.body) === hash ? transaction : undefined;
  } catch {
    return undefined;
  }
}

/** Sources of the status of one transaction. */
export interface StatusSources {
  isPending(): boolean | Promise<boolean>;
  /** Returns the number of the block that includes the transaction; undefined if there is none. */
  blockNumber(): Promise<bigint | undefined>;
  /** Returns the reason of the rejection; undefined if there was none. */
  rejectionReason(): string | undefined | Promise<string | undefined>;
}

/**
 * Finds the status of a transaction. Checks the mempool before the blocks: a transaction that moves into a block
 * meanwhile is then found. It enters the block before it leaves the mempool, so the block takes precedence.
 */
export async function findTransactionStatus(sources: StatusSources): Promise<TransactionStatusInfo | undefined> {
  const isPending = await sources.isPending();
  const blockNumber = await sources.blockNumber();
  if (blockNumber !== undefined) {
    return { status: "included", blockNumber };
  }
  if (isPending) {
    return { status: "pending" };
  }
  const reason = await sources.rejectionReason();
  return reason === undefined ? undefined : { status: "rejected", reason };
}
