/** Tests if the database accepts writes, with a write that is rolled back. */
import { randomBytes } from "node:crypto";
import type { DatabasePart } from "../queries/database.js";

/** Size of the write in bytes: too large for an engine to hold it only in memory. */
const probeBytes = 4 * 1024 * 1024;

/**
 * Inserts a row and rolls back. Rejects if a write of that size fails.
 *
 * @param rowOf returns a row that contains the bytes; it is never committed.
 */
export async function tryWrite(
  transaction: DatabasePart["transaction"],
  table: string,
  rowOf: (bytes: Buffer) => object,
): Promise<void> {
  const rollback = new Error("The write succeeded.");
  await transaction(async (db) => {
    await db.run((sql) => sql(table).insert(rowOf(randomBytes(probeBytes))));
    throw rollback;
  }).catch((error: unknown) => {
    if (error !== rollback) {
      throw error;
    }
  });
}
