/** Snapshot reads. */
import type { DatabasePart, Queries } from "./database.js";

/** Wraps transactions so that all reads share one snapshot: on PostgreSQL, REPEATABLE READ and read-only. */
export function withSnapshotReads(transaction: DatabasePart["transaction"]) {
  return <T>(work: (db: Queries) => Promise<T>): Promise<T> =>
    transaction(async (db) => {
      const { startSnapshotReads } = db.dialect;
      if (startSnapshotReads !== undefined) {
        await db.run((sql) => sql.raw(startSnapshotReads));
      }
      return await work(db);
    });
}
