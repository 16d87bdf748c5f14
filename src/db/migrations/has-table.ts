import type { Queries, Query } from "../queries/database.js";

/** Returns true if the table exists. */
export async function hasTable(db: Queries, name: string): Promise<boolean> {
  // Typed as a promise, but a query like the others.
  return (await db.run((sql) => sql.schema.hasTable(name) as unknown as Query)) === true;
}
