/** Looks at the last nonce of every sender again. */
import { type Verification, verifyRows } from "../../base/errors/verification.js";
import type { Queries } from "../../db/queries/database.js";
import { nonceOf, type SenderRow } from "./sender-store.js";

const portionRows = 100;

/**
 * Walks over senders.
 *
 * @param checkState looks whether a sender is in the state as it is here. Throws DamageError.
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
