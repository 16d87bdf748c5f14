/** Failure of a node's database, by a missing table. */
import { mempoolSuffix } from "../../../src/db/open.js";
import { openSqlite } from "../databases/databases.js";
import type { TestNode } from "./start-node.js";
import type { Teardown } from "./teardown.js";

/** Makes a node fail, because its pending transactions cannot be counted. Returns the function that repairs it. */
export async function failDatabase(
  t: Teardown,
  { databaseFile }: Pick<TestNode, "databaseFile">,
): Promise<() => Promise<void>> {
  const database = openSqlite(t, `${databaseFile}${mempoolSuffix}`);
  await database.schema.renameTable("pending_transactions", "gone");
  return async () => {
    await database.schema.renameTable("gone", "pending_transactions");
  };
}
