import type { Queries, Query } from "../queries/database.js";

/** Whether there is a table. */
export async function hasTable(db: Queries, name: string): Promise<boolean> {
  // It says that it is a promise; it is a query like the others.
  return (await db.run((sql) => sql.schema.hasTable(name) as unknown as Query)) === true;
}
