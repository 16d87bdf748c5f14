/** Database store of the highest nonce of each sender. */
import type { SnapshotSender } from "../../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { toHex32 } from "../../base/crypto/hash.js";
import { CorruptionError } from "../../base/errors/corruption.js";
import { type Verification, verifyRows } from "../../base/errors/verification.js";
import type { Queries } from "../../db/queries/database.js";
import { bulkInsert } from "../../db/rows/bulk-changes.js";
import { hashSenderRow, type SenderColumns } from "../../db/rows/row-hashes.js";
import { senderLeaf } from "../../tree/state-leaves.js";

/** Row of a sender with its checksum. */
type SenderRow = SenderColumns & { readonly row_hash: string };

const columns = ["identity", "nonce", "row_hash"] as const;

/** Returns the nonce of a row. Throws CorruptionError if the checksum does not match. */
function nonceOf(row: SenderRow): bigint {
  if (row.row_hash !== hashSenderRow(row)) {
    throw new CorruptionError("The last nonce of a sender in the database is corrupt.");
  }
  return BigInt(row.nonce);
}

function valuesOf(identity: string, nonce: bigint): [identity: string, nonce: number, rowHash: string] {
  const row = { identity, nonce: Number(nonce) };
  return [identity, row.nonce, hashSenderRow(row)];
}

/** Creates the store, inside the transaction of a block or as currently committed. */
export function createSenderStore(db: Queries) {
  const { list } = db.dialect;
  // CROSS JOIN makes the planner start with the list.
  const ofSenders = db.prepare<SenderRow>(
    `SELECT ${columns.map((name) => `s.${name}`).join(", ")} FROM ${list.table}
      CROSS JOIN senders AS s WHERE s.identity = ${list.text}`,
  );
  const save = db.prepare(
    `INSERT INTO senders (${columns.join(", ")})
      SELECT k.value ->> 0, CAST(k.value ->> 1 AS bigint), k.value ->> 2 FROM ${list.table} WHERE true
      ON CONFLICT (identity) DO UPDATE SET nonce = excluded.nonce, row_hash = excluded.row_hash`,
  );

  async function lastNonces(senders: readonly string[]): Promise<Map<string, bigint>> {
    const rows = senders.length === 0 ? [] : await ofSenders(JSON.stringify(senders));
    return new Map(rows.map((row) => [row.identity, nonceOf(row)]));
  }

  return {
    /** Returns the highest nonce of the sender in a block; undefined if there is none. */
    lastNonce: async (identity: string): Promise<bigint | undefined> => (await lastNonces([identity])).get(identity),
    /** Returns the highest nonce of each given sender that has one. */
    lastNonces,

    /** Saves nonces; each must be higher than the stored one. */
    async saveNonces(nonces: ReadonlyMap<string, bigint>): Promise<void> {
      await save(JSON.stringify([...nonces].map(([identity, nonce]) => valuesOf(identity, nonce))));
    },
  };
}

/**
 * Scans the stored nonces of all senders.
 *
 * @param checkState checks that the state tree contains a sender with its current nonce. Throws CorruptionError.
 */
export function verifySenders(db: Queries, checkState: (identity: string) => Promise<void>): Verification {
  return verifyRows({
    kind: "senders",
    count: async () => (await db.first<{ count: number }>((sql) => sql("senders").count({ count: "*" })))?.count ?? 0,
    after: db.prepare<SenderRow>(
      `SELECT identity, nonce, row_hash FROM senders WHERE identity > ? ORDER BY identity LIMIT 100`,
      "list",
    ),
    keyOf: ({ identity }) => identity,
    nameOf: ({ identity }) => `the sender ${identity}`,
    async check(row) {
      nonceOf(row);
      await checkState(row.identity);
    },
  });
}

const exportedRows = 2_000;

/** Yields all senders for a snapshot in portions, ordered by identity, each with its leaf of the state tree. */
export async function* exportSenders(db: Queries) {
  for (let last = ""; ;) {
    const after = last;
    const rows = await db.rows<SenderRow>((sql) =>
      sql("senders").where("identity", ">", after).orderBy("identity").limit(exportedRows).select(columns),
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

/** Inserts the senders of a snapshot into an empty table. */
export async function importSenders(db: Queries, senders: readonly SnapshotSender[]): Promise<void> {
  const kinds = { identity: "text", nonce: "integer", row_hash: "text" } as const;
  const rows = senders.map(({ publicKey, nonce }) => valuesOf(toHex32(publicKey), nonce));
  await bulkInsert(db, "senders", kinds, rows);
}

/** Deletes all senders. */
export async function clearSenders(db: Queries): Promise<void> {
  await db.run((sql) => sql("senders").delete());
}
