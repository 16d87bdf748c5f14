/** Rows of block headers, also of blocks whose transactions are not retained: before a snapshot, or pruned. */
import type { BlockHeader } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type { SignedHeader } from "../../../gen/gatehouse/peer/v1/snapshot_pb.js";
import type { Queries } from "../../db/queries/database.js";
import { bulkInsert } from "../../db/rows/bulk-changes.js";
import { hashBlockRow } from "../../db/rows/row-hashes.js";

/** Header with a verified signature. */
export interface CheckedHeader {
  /** Hash of the block: 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly header: BlockHeader;
  readonly signed: Pick<SignedHeader, "header" | "signature">;
}

/** Columns of an inserted block, with their types. */
export const blockKinds = {
  ...({ number: "integer", hash: "text", previous_hash: "text", timestamp_ms: "integer" } as const),
  ...({ header: "bytes", signature: "bytes", row_hash: "text" } as const),
};

/** Returns the values of an inserted block, in the order of {@link blockKinds}. */
export function blockValues({ hash, header, signed }: CheckedHeader): (string | number)[] {
  const row = {
    ...{ number: Number(header.number), hash, previous_hash: header.previousHash },
    ...{ timestamp_ms: Number(header.timestampMs), signature: signed.signature },
  };
  return [
    ...[row.number, hash, row.previous_hash, row.timestamp_ms],
    ...[toHex(signed.header), toHex(signed.signature), hashBlockRow(row)],
  ];
}

/** Encodes bytes as hex digits, without copying the bytes. */
export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("hex");
}

/**
 * Returns the number of the latest block on one server; undefined without blocks.
 *
 * @param rows returns the rows of a query on that server.
 */
export async function readLatestNumber(
  rows: (text: string) => Promise<readonly object[]>,
): Promise<bigint | undefined> {
  const [row] = (await rows("SELECT max(number) AS latest FROM blocks")) as { readonly latest: number | null }[];
  return typeof row?.latest === "number" ? BigInt(row.latest) : undefined;
}

/** Inserts headers of blocks without their transactions. */
export async function importHeaders(db: Queries, headers: readonly CheckedHeader[]): Promise<void> {
  await bulkInsert(db, "blocks", blockKinds, headers.map(blockValues));
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
