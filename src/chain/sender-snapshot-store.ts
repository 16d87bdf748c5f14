/** Senders and headers as a snapshot has them: read out of one database, and put into another one. */
import type { SignedHeader, SnapshotSender } from "../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { toHex32 } from "../base/hash.js";
import type { Queries } from "../db/database.js";
import { bulkInsert } from "../db/bulk-insert.js";
import { hashBlockRow, hashSenderRow, type SenderColumns } from "../db/row-hashes.js";
import { stateHashes } from "../tree/node-hashes.js";
import type { Leaf } from "../tree/path.js";
import { nonceOf } from "./sender-store.js";
import type { BlockHeader } from "../../gen/gatehouse/chain/v1/block_pb.js";

/** A sender of a snapshot, and its leaf. */
export interface SenderOfSnapshot {
  readonly leaf: Leaf;
  readonly sender: { readonly publicKey: Uint8Array; readonly nonce: bigint };
}

const portionRows = 2_000;

/** Reads all senders. */
export async function* exportSenders(db: Queries): AsyncGenerator<readonly SenderOfSnapshot[], void> {
  for (let last = ""; ;) {
    const after = last;
    const rows = await db.rows<SenderColumns & { readonly row_hash: string }>((sql) =>
      sql("senders")
        .where("identity", ">", after)
        .orderBy("identity")
        .limit(portionRows)
        .select("identity", "nonce", "row_hash"),
    );
    if (rows.length === 0) {
      return;
    }
    last = rows.at(-1)!.identity;
    yield rows.map((row) => {
      const sender = { publicKey: Buffer.from(row.identity.slice(2), "hex"), nonce: nonceOf(row) };
      return { leaf: senderLeaf(sender), sender };
    });
  }
}

/** The leaf of a sender. */
export function senderLeaf({ publicKey, nonce }: Pick<SnapshotSender, "publicKey" | "nonce">): Leaf {
  return { key: stateHashes.senderKey(publicKey), valueHash: stateHashes.sender(nonce) };
}

/** Stores senders where there are none. */
export async function importSenders(db: Queries, senders: readonly SnapshotSender[]): Promise<void> {
  const kinds = { identity: "text", nonce: "integer", row_hash: "text" } as const;
  const rows = senders.map(({ publicKey, nonce }) => {
    const row = { identity: toHex32(publicKey), nonce: Number(nonce) };
    return [row.identity, row.nonce, hashSenderRow(row)];
  });
  await bulkInsert(db, "senders", kinds, rows);
}

/** A header whose signature was verified. */
export interface CheckedHeader {
  /** Of the block: 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly header: BlockHeader;
  readonly signed: Pick<SignedHeader, "header" | "signature">;
}

/** Stores headers of blocks whose transactions are not there. */
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

/** Takes all headers out but that of block 0, and all senders. */
export async function clearHeaders(db: Queries): Promise<void> {
  await db.runAll((sql) => [sql("blocks").where("number", ">", 0).delete(), sql("senders").delete()]);
}

/** Headers in the order of their numbers. */
export async function listHeaders(db: Queries, from: number, count: number) {
  return await db.rows<{ header: Uint8Array; signature: Uint8Array }>((sql) =>
    sql("blocks")
      .where("number", ">=", Math.max(from, 1))
      .where("number", "<", from + count)
      .orderBy("number")
      .select("header", "signature"),
  );
}

/** Removes the transactions of older blocks than this. */
export async function pruneBlocks(db: Queries, lowest: bigint): Promise<void> {
  await db.run((sql) => sql("transactions").where("block_number", "<", Number(lowest)).delete());
  await setLowestBlock(db, lowest);
}

/** From now on the transactions of older blocks than this are not there. */
export async function setLowestBlock(db: Queries, number: bigint): Promise<void> {
  await db.run((sql) => sql("block_bounds").update({ lowest_block: Number(number) }));
}
