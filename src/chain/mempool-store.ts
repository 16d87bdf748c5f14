/** The mempool, and what was turned away of it, in the database. */
import { fromBinary } from "@bufbuild/protobuf";
import { randomBytes } from "node:crypto";
import { type Transaction, TransactionSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { inChunks } from "../db/chunks.js";
import type { Database, Queries } from "../db/database.js";
import type { Mempool } from "./store.js";

/** The stored mempool. */
export interface MempoolStore extends Mempool {
  isPending(hash: string): Promise<boolean>;
  /** Why a transaction was turned away; undefined when it was not, or long ago. */
  rejectionOf(hash: string): Promise<string | undefined>;
}

/** The mempool as blocks change it, inside their transaction. */
export interface MempoolChanges {
  remove(hashes: readonly string[]): Promise<void>;
  /** Takes a transaction out of the mempool and remembers why. */
  reject(hash: string, reason: string, rejectedMs: number): Promise<void>;
}

/** Most rejected transactions that are remembered. */
const maxRejected = 10_000;
/** How much is written to try whether writes go through: too much for any engine to keep in its memory alone. */
const triedBytes = 4 * 1024 * 1024;

export function createMempoolStore({ read, write }: Pick<Database, "read" | "write">): MempoolStore {
  return {
    async pendingCount() {
      const row = await read.first<{ count: number }>((sql) => sql("mempool").count({ count: "*" }));
      return row?.count ?? 0;
    },

    async mempoolSize() {
      const row = await read.first<{ count: number; bytes: number }>((sql) =>
        sql("mempool").select(sql.raw("count(*) AS count, coalesce(sum(length(bytes)), 0) AS bytes")),
      );
      return { count: row?.count ?? 0, bytes: row?.bytes ?? 0 };
    },

    async insertPending({ hash }, bytes, receivedMs) {
      await write.run((sql) =>
        sql("mempool")
          .insert({ hash, bytes: Buffer.from(bytes), received_ms: receivedMs })
          .onConflict("hash")
          .ignore(),
      );
    },

    async pending(limit) {
      const rows = await read.rows<{ bytes: Buffer }>((sql) =>
        sql("mempool").orderBy(["received_ms", "hash"]).limit(limit).select("bytes"),
      );
      return rows.map(({ bytes }) => fromBinary(TransactionSchema, bytes));
    },

    pendingPortions: (limit, portionBytes) => readPortions(read, limit, portionBytes),

    async pendingToRelay(to, relayedBeforeMs, limit) {
      const rows = await read.rows<{ hash: string; bytes: Buffer }>((sql) =>
        sql("mempool")
          .where(`${to}_ms`, "<", relayedBeforeMs)
          .orderBy(["received_ms", "hash"])
          .limit(limit)
          .select("hash", "bytes"),
      );
      return rows.map(({ hash, bytes }) => ({ hash, transaction: fromBinary(TransactionSchema, bytes) }));
    },

    async markRelayed(to, hashes, relayedMs) {
      await write.runAll((sql) =>
        inChunks(hashes).map((some) =>
          sql("mempool")
            .whereIn("hash", some)
            .update({ [`${to}_ms`]: relayedMs }),
        ),
      );
    },

    async pendingSince(receivedBeforeMs, limit) {
      const rows = await read.rows<{ hash: string }>((sql) =>
        sql("mempool").where("received_ms", "<", receivedBeforeMs).orderBy("received_ms").limit(limit).select("hash"),
      );
      return rows.map(({ hash }) => hash);
    },

    async isPending(hash) {
      return (await read.first((sql) => sql("mempool").where({ hash }).select("hash"))) !== undefined;
    },

    async rejectionOf(hash) {
      const row = await read.first<{ reason: string }>((sql) =>
        sql("rejected_transactions").where({ hash }).select("reason"),
      );
      return row?.reason;
    },
  };
}

async function* readPortions(
  read: Database["read"],
  limit: number,
  portionBytes: number,
): AsyncGenerator<Transaction[], void> {
  const rows = await read.rows<{ hash: string; size: number }>((sql) =>
    sql("mempool").orderBy(["received_ms", "hash"]).limit(limit).select("hash", sql.raw("length(bytes) AS size")),
  );
  for (const hashes of inPortions(rows, portionBytes)) {
    const found = await read.rows<{ bytes: Buffer }>((sql) =>
      sql("mempool").whereIn("hash", hashes).orderBy(["received_ms", "hash"]).select("bytes"),
    );
    yield found.map(({ bytes }) => fromBinary(TransactionSchema, bytes));
  }
}

/** Hashes of transactions, in portions of at most so many bytes, or of one transaction. */
function* inPortions(
  rows: readonly { readonly hash: string; readonly size: number }[],
  portionBytes: number,
): Generator<string[]> {
  let portion: string[] = [];
  let bytes = 0;
  for (const { hash, size } of rows) {
    if (portion.length > 0 && bytes + size > portionBytes) {
      yield portion;
      portion = [];
      bytes = 0;
    }
    portion.push(hash);
    bytes += size;
  }
  if (portion.length > 0) {
    yield portion;
  }
}

/** Writes as much as a large block does and takes it back. Rejects as that block would. */
export async function tryWrite({ transaction }: Pick<Database, "transaction">): Promise<void> {
  const enough = new Error("There is room.");
  const tried = { hash: "0", bytes: randomBytes(triedBytes), received_ms: 0 };
  await transaction(async (db) => {
    await db.run((sql) => sql("mempool").insert(tried));
    throw enough;
  }).catch((error: unknown) => {
    if (error !== enough) {
      throw error;
    }
  });
}

/** Builds the changes. */
export function createMempoolChanges(db: Queries): MempoolChanges {
  return {
    async remove(hashes) {
      await db.runAll((sql) => inChunks(hashes).map((some) => sql("mempool").whereIn("hash", some).delete()));
    },

    async reject(hash, reason, rejectedMs) {
      await db.runAll((sql) => [
        sql("mempool").where({ hash }).delete(),
        sql("rejected_transactions").insert({ hash, reason, rejected_ms: rejectedMs }).onConflict("hash").merge(),
      ]);
      const row = await db.first<{ count: number }>((sql) => sql("rejected_transactions").count({ count: "*" }));
      const surplus = (row?.count ?? 0) - maxRejected;
      if (surplus > 0) {
        await db.run((sql) => {
          const oldest = sql("rejected_transactions").orderBy("rejected_ms").limit(surplus).select("hash");
          return sql("rejected_transactions").whereIn("hash", oldest).delete();
        });
      }
    },
  };
}
