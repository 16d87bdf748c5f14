/** Reads of one moment. */
import type { DatabasePart, Queries } from "./database.js";

/** Makes transactions such that all that is read in one of them is of one moment. */
export function withSnapshotReads(transaction: DatabasePart["transaction"]) {
  return <T>(work: (db: Queries) => Promise<T>): Promise<T> =>
    transaction(async (db) => {
      const { readOneMoment } = db.dialect;
      if (readOneMoment !== undefined) {
        await db.run((sql) => sql.raw(readOneMoment));
      }
      return await work(db);
    });
}
