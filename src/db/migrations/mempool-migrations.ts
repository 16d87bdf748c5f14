/** The schema of the mempool, as the steps that lead to it; what holds for those of the chain holds for them. */
import type { Migration } from "./migration.js";

/** All steps, oldest first. */
export const mempoolMigrations: readonly Migration[] = [
  {
    name: "pending and rejected transactions",
    queries: (sql) => [
      sql.schema.createTable("pending_transactions", (table) => {
        table.string("hash", 66).primary();
        // What is looked at again and again stands beside the bytes, so that they are read for a block alone.
        table.string("sender", 66).notNullable();
        table.bigInteger("nonce").notNullable();
        // As its sender wrote it: any integer of 64 bits, in digits.
        table.string("timestamp_ms", 20).notNullable();
        // The address, or the range, that it came from; none when this node made it itself.
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
        // Nonce of the sender's transaction before it, where whoever relayed it has said so.
        table.bigInteger("after_nonce");
      }),
    ],
  },
];
