/** Scan that verifies the stored nonces of all senders. */
import { type Verification, verifyRows } from "../../base/errors/verification.js";
import type { Queries } from "../../db/queries/database.js";
import { nonceOf, type SenderRow } from "./sender-store.js";

const portionRows = 100;

/**
 * Scans all senders.
 *
 * @param checkState checks that the state tree contains a sender with its current nonce. Throws CorruptionError.
 */
export function verifySenders(db: Queries, checkState: (identity: string) => Promise<void>): Verification {
  return verifyRows({
    kind: "senders",
    count: async () => (await db.first<{ count: number }>((sql) => sql("senders").count({ count: "*" })))?.count ?? 0,
    after: db.prepare<SenderRow>(
      `SELECT identity, nonce, row_hash FROM senders WHERE identity > ? ORDER BY identity LIMIT ${portionRows}`,
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
