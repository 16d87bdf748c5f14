/** A write that is taken back: it tells whether writes go through, and leaves nothing behind. */
import { randomBytes } from "node:crypto";
import type { DatabasePart } from "../queries/database.js";

/** How much is written: too much for any engine to keep in its memory alone. */
const triedBytes = 4 * 1024 * 1024;

/**
 * Inserts a row and takes it back. Rejects as a write of that size would.
 *
 * @param rowOf the row around such bytes; nobody sees it.
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
