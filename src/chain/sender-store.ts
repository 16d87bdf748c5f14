/** The largest nonce of each sender, in the database. */
import { inChunks } from "../db/chunks.js";
import type { Queries } from "../db/database.js";
import type { Senders } from "./store.js";

/** The stored nonces; inside the transaction of a block, or as they are now. */
export interface SenderStore extends Senders {
  /** Largest nonce of each of these senders that has one. */
  lastNonces(senders: readonly string[]): Promise<Map<string, bigint>>;
  /** Remembers nonces, each larger than that before. */
  saveNonces(nonces: ReadonlyMap<string, bigint>): Promise<void>;
}

interface SenderRow {
  readonly identity: string;
  readonly nonce: number;
}

/** Builds the store. */
export function createSenderStore(db: Queries): SenderStore {
  return {
    async lastNonce(identity) {
      const row = await db.first<SenderRow>((sql) => sql("senders").where({ identity }).select("nonce"));
      return row && BigInt(row.nonce);
    },

    async lastNonces(senders) {
      const nonces = new Map<string, bigint>();
      for (const some of inChunks(senders)) {
        const rows = await db.rows<SenderRow>((sql) =>
          sql("senders").whereIn("identity", some).select("identity", "nonce"),
        );
        rows.forEach(({ identity, nonce }) => nonces.set(identity, BigInt(nonce)));
      }
      return nonces;
    },

    async saveNonces(nonces) {
      const rows = [...nonces].map(([identity, nonce]) => ({ identity, nonce: Number(nonce) }));
      await db.runAll((sql) =>
        inChunks(rows).map((some) => sql("senders").insert(some).onConflict("identity").merge()),
      );
    },
  };
}
