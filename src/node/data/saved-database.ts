/** Description of a saved database, read from the copy, which no process changes. */
import { createBlockStore } from "../../chain/blocks/block-store.js";
import { readStoredGenesis } from "../../chain/blocks/genesis.js";
import { readLease } from "../../chain/writer/writer-lease-store.js";
import { StartError } from "../../base/errors/start-error.js";
import { checkChainSchema } from "../migrations/migrate.js";
import { openForReading } from "../../db/open.js";
import { rejectUnfinishedCopy } from "./copies/copy-progress.js";
import { loadPeers } from "../../peers/address-book/peer-store.js";

export type SavedDatabase = Awaited<ReturnType<typeof describeDatabase>>;

/**
 * Reads the description of a database. Throws DatabaseError, StartError with a message that says why the database
 * cannot be used.
 */
export async function describeDatabase(url: string) {
  const database = await openForReading(url);
  const { read } = database;
  try {
    await rejectUnfinishedCopy(read);
    await checkChainSchema(database);
    const blocks = createBlockStore(read);
    const [genesis, head] = [await readStoredGenesis(blocks), await blocks.head()];
    if (genesis === undefined || head === undefined) {
      throw new StartError("The database has no chain yet; there is nothing to back up but the key.");
    }
    return {
      genesis,
      head: { number: Number(head.number), hash: head.hash },
      /** Public key of the node that owns the database; null while the database has no owner. */
      owner: (await readLease(read)).identity ?? null,
      peers: await loadPeers(read),
    };
  } finally {
    await database.close();
  }
}
