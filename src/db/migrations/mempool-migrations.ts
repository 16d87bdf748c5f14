/** Schema of the mempool, as steps. The rules of migrations.ts apply. */
import type { Migration } from "./migrations.js";

export const mempoolMigrations: readonly Migration[] = [
  {
    name: "pending and rejected transactions",
    queries: (sql) => [
      sql.schema.createTable("pending_transactions", (table) => {
        table.string("hash", 66).primary();
        // Columns for selection; the bytes are read for a block only.
        table.string("sender", 66).notNullable();
        table.bigInteger("nonce").notNullable();
        // As the sender wrote it: any 64-bit integer, in decimal digits.
        table.string("timestamp_ms", 20).notNullable();
        // Source address or range; null for a transaction of this node.
        table.string("origin", 50);
        table.integer("size_bytes").notNullable();
        table.bigInteger("received_ms").notNullable();
        table.bigInteger("expires_ms").notNullable();
        table.binary("bytes").notNullable();
        table.index(["received_ms", "hash"]);
      }),
      sql.schema.createTable("rejected_transactions", (table) => {
        table.string("hash", 66).primary();
        table.text("reason").notNullable();
        table.bigInteger("rejected_ms").notNullable().index();
        table.bigInteger("expires_ms").notNullable().index();
      }),
    ],
  },
  {
    name: "what pending transactions come after",
    queries: (sql) => [
      sql.schema.alterTable("pending_transactions", (table) => {
        // Nonce of the sender's preceding transaction, if the relaying node reported it.
        table.bigInteger("after_nonce");
      }),
    ],
  },
];
