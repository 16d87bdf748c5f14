/** Export and import of senders for snapshots. */
import type { SnapshotSender } from "../../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { toHex32 } from "../../base/crypto/hash.js";
import type { Queries } from "../../db/queries/database.js";
import { bulkInsert } from "../../db/rows/bulk-changes.js";
import { hashSenderRow, type SenderColumns } from "../../db/rows/row-hashes.js";
import type { Leaf } from "../../tree/path.js";
import { senderLeaf } from "../../tree/state-leaves.js";
import { nonceOf } from "./sender-store.js";

/** Sender in a snapshot, with its leaf of the state tree. */
export interface SenderOfSnapshot {
  readonly leaf: Leaf;
  readonly sender: { readonly publicKey: Uint8Array; readonly nonce: bigint };
}

const portionRows = 2_000;

/** Yields all senders in portions, ordered by identity. */
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

/** Inserts senders into an empty table. */
export async function importSenders(db: Queries, senders: readonly SnapshotSender[]): Promise<void> {
  const kinds = { identity: "text", nonce: "integer", row_hash: "text" } as const;
  const rows = senders.map(({ publicKey, nonce }) => {
    const row = { identity: toHex32(publicKey), nonce: Number(nonce) };
    return [row.identity, row.nonce, hashSenderRow(row)];
  });
  await bulkInsert(db, "senders", kinds, rows);
}

/** Deletes all senders. */
export async function clearSenders(db: Queries): Promise<void> {
  await db.run((sql) => sql("senders").delete());
}
