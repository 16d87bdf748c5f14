/** Stored data of a node, opened for verification without the node. */
import { createBlockStore } from "../../chain/blocks/block-store.js";
import { readStoredGenesis } from "../../chain/blocks/genesis.js";
import { DatabaseError } from "../../db/queries/database.js";
import { checkChainSchema } from "../migrations/migrate.js";
import { openForReading } from "../../db/open.js";
import { rejectUnfinishedCopy } from "./copies/copy-progress.js";
import { readSync } from "../../snapshot/sync-store.js";
import { verifyAll } from "./verify-data.js";

/**
 * Opens a database for reads only. Returns the verification of all stored data. Throws DatabaseError if there is no
 * database, none that this version can read, or no complete state. Corruption errors of the database are thrown
 * unchanged.
 */
export async function openStoredData(url: string) {
  const database = await openForReading(url);
  const close = (): Promise<void> => database.close();
  try {
    await rejectUnfinishedCopy(database.read);
    await checkChainSchema(database);
    const genesis = await readStoredGenesis(createBlockStore(database.read));
    if (genesis === undefined) {
      throw new DatabaseError("The database has no chain yet; there is nothing to verify.");
    }
    if ((await readSync(database.read)) !== undefined) {
      throw new DatabaseError(
        "The database has a part of a snapshot, which its node is loading; run this command again when that is finished.",
      );
    }
    return { verification: verifyAll({ database, genesis }), close };
  } catch (error) {
    await close();
    throw error;
  }
}
