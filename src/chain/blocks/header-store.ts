/** Headers of blocks whose transactions are not retained: blocks before a snapshot, and pruned blocks. */
import type { BlockHeader } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type { SignedHeader } from "../../../gen/gatehouse/peer/v1/snapshot_pb.js";
import type { Queries } from "../../db/queries/database.js";
import { bulkInsert } from "../../db/rows/bulk-insert.js";
import { hashBlockRow } from "../../db/rows/row-hashes.js";

/** Header with a verified signature. */
export interface CheckedHeader {
  /** Hash of the block: 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly header: BlockHeader;
  readonly signed: Pick<SignedHeader, "header" | "signature">;
}

/** Inserts headers of blocks without their transactions. */
export async function importHeaders(db: Queries, headers: readonly CheckedHeader[]): Promise<void> {
  const kinds = {
    ...({ number: "integer", hash: "text", previous_hash: "text", timestamp_ms: "integer" } as const),
    ...({ header: "bytes", signature: "bytes", row_hash: "text" } as const),
  };
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
  const rows = headers.map(({ hash, header, signed }) => {
    const row = {
      number: Number(header.number),
      hash,
      previous_hash: header.previousHash,
      timestamp_ms: Number(header.timestampMs),
      signature: signed.signature,
    };
    const { number, previous_hash, timestamp_ms } = row;
    return [number, hash, previous_hash, timestamp_ms, hex(signed.header), hex(signed.signature), hashBlockRow(row)];
  });
  await bulkInsert(db, "blocks", kinds, rows);
}

/** Deletes all headers except that of block 0. */
export async function clearHeaders(db: Queries): Promise<void> {
  await db.run((sql) => sql("blocks").where("number", ">", 0).delete());
}

/** Returns the headers of `count` blocks from a number on, in ascending order. Skips block 0, which has no header. */
export async function listHeaders(db: Queries, from: number, count: number) {
  return await db.rows<{ header: Uint8Array; signature: Uint8Array }>((sql) =>
    sql("blocks")
      .where("number", ">=", Math.max(from, 1))
      .where("number", "<", from + count)
      .orderBy("number")
      .select("header", "signature"),
  );
}

/** Deletes the transactions of blocks before `lowest` and records `lowest`. */
export async function pruneBlocks(db: Queries, lowest: bigint): Promise<void> {
  await db.run((sql) => sql("transactions").where("block_number", "<", Number(lowest)).delete());
  await setLowestBlock(db, lowest);
}

/** Records the oldest block whose transactions are retained. */
export async function setLowestBlock(db: Queries, number: bigint): Promise<void> {
  await db.run((sql) => sql("block_bounds").update({ lowest_block: Number(number) }));
}
