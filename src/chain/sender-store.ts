/** The largest nonce of each sender, in the database. */
import { DamageError } from "../base/damage.js";
import { inChunks } from "../db/chunks.js";
import type { Queries } from "../db/database.js";
import { hashSenderRow, type SenderColumns } from "../db/row-hashes.js";
import type { Senders } from "./store.js";

/** The stored nonces; inside the transaction of a block, or as they are now. */
export interface SenderStore extends Senders {
  /** Largest nonce of each of these senders that has one. */
  lastNonces(senders: readonly string[]): Promise<Map<string, bigint>>;
  /** Remembers nonces, each larger than that before. */
  saveNonces(nonces: ReadonlyMap<string, bigint>): Promise<void>;
}

/** A stored nonce. */
export type SenderRow = SenderColumns & { readonly row_hash: string };

const columns = ["identity", "nonce", "row_hash"] as const;

/** The nonce of a row. Throws DamageError when it is not the one that was stored. */
export function nonceOf(row: SenderRow): bigint {
  if (row.row_hash !== hashSenderRow(row)) {
    throw new DamageError("The last nonce of a sender in the database is not what was stored.");
  }
  return BigInt(row.nonce);
}

/** Builds the store. */
export function createSenderStore(db: Queries): SenderStore {
  return {
    async lastNonce(identity) {
      const row = await db.first<SenderRow>((sql) => sql("senders").where({ identity }).select(columns));
      return row && nonceOf(row);
    },

    async lastNonces(senders) {
      const nonces = new Map<string, bigint>();
      for (const some of inChunks(senders)) {
        const rows = await db.rows<SenderRow>((sql) => sql("senders").whereIn("identity", some).select(columns));
        rows.forEach((row) => nonces.set(row.identity, nonceOf(row)));
      }
      return nonces;
    },

    async saveNonces(nonces) {
      const rows = [...nonces].map(([identity, last]) => {
        const row = { identity, nonce: Number(last) };
        return { ...row, row_hash: hashSenderRow(row) };
      });
      await db.runAll((sql) =>
        inChunks(rows).map((some) => sql("senders").insert(some).onConflict("identity").merge()),
      );
    },
  };
}
