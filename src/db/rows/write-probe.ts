/** Write that is rolled back. It tests if the database accepts writes, and leaves nothing behind. */
import { randomBytes } from "node:crypto";
import type { DatabasePart } from "../queries/database.js";

/** Size of the write in bytes: too large for an engine to hold it only in memory. */
const triedBytes = 4 * 1024 * 1024;

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
  const enough = new Error("There is room.");
  await transaction(async (db) => {
    await db.run((sql) => sql(table).insert(rowOf(randomBytes(triedBytes))));
    throw enough;
  }).catch((error: unknown) => {
    if (error !== enough) {
      throw error;
    }
  });
}
