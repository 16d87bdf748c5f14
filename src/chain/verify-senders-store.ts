/** Looks at the last nonce of every sender again. */
import { type Finding, look, type Verification } from "../base/verification.js";
import type { Queries } from "../db/database.js";
import { nonceOf, type SenderRow } from "./sender-store.js";

const portionRows = 100;

/** Walks over senders. */
export async function* verifySenders(db: Queries, checkState: (identity: string) => Promise<void>): Verification {
  const after = db.prepare<SenderRow>(
    `SELECT identity, nonce, row_hash FROM senders WHERE identity > ? ORDER BY identity LIMIT ${portionRows}`,
    "list",
  );
  const count = await db.first<{ count: number }>((sql) => sql("senders").count({ count: "*" }));
  const total = count?.count ?? 0;
  let [last, done] = ["", 0];
  for (;;) {
    const rows = await after(last);
    if (rows.length === 0) {
      return;
    }
    const findings: Finding[] = [];
    for (const row of rows) {
      const found = await look(`the sender ${row.identity}`, async () => {
        nonceOf(row);
        await checkState(row.identity);
      });
      findings.push(...found);
    }
    last = rows.at(-1)!.identity;
    done += rows.length;
    yield { kind: "senders", done, total: Math.max(done, total), findings };
  }
}
