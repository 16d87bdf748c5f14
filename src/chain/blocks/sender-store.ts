/** Database store of the highest nonce of each sender. */
import { CorruptionError } from "../../base/errors/corruption.js";
import type { Queries } from "../../db/queries/database.js";
import { hashSenderRow, type SenderColumns } from "../../db/rows/row-hashes.js";
import type { Senders } from "./store.js";

/** Store of nonces, inside the transaction of a block or as currently committed. */
export interface SenderStore extends Senders {
  /** Returns the highest nonce of each given sender that has one. */
  lastNonces(senders: readonly string[]): Promise<Map<string, bigint>>;
  /** Saves nonces; each must be higher than the stored one. */
  saveNonces(nonces: ReadonlyMap<string, bigint>): Promise<void>;
}

/** Row of a sender with its checksum. */
export type SenderRow = SenderColumns & { readonly row_hash: string };

const columns = ["identity", "nonce", "row_hash"] as const;

/** Returns the nonce of a row. Throws CorruptionError if the checksum does not match. */
export function nonceOf(row: SenderRow): bigint {
  if (row.row_hash !== hashSenderRow(row)) {
    throw new CorruptionError("The last nonce of a sender in the database is corrupt.");
  }
  return BigInt(row.nonce);
}

/** Creates the sender store. */
export function createSenderStore(db: Queries): SenderStore {
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
  return {
    async lastNonce(identity) {
      const row = await db.first<SenderRow>((sql) => sql("senders").where({ identity }).select(columns));
      return row && nonceOf(row);
    },

    async lastNonces(senders) {
      const rows = senders.length === 0 ? [] : await ofSenders(JSON.stringify(senders));
      return new Map(rows.map((row) => [row.identity, nonceOf(row)]));
    },

    async saveNonces(nonces) {
      const rows = [...nonces].map(([identity, nonce]) => {
        const row = { identity, nonce: Number(nonce) };
        return [identity, row.nonce, hashSenderRow(row)];
      });
      await save(JSON.stringify(rows));
    },
  };
}
