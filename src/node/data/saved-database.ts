/** Description of a saved database, read from the copy, which no process changes. */
import { createBlockStore } from "../../chain/blocks/block-store.js";
import { type Genesis, readStoredGenesis } from "../../chain/blocks/genesis.js";
import { readLease } from "../../chain/writer/writer-lease-store.js";
import { StartError } from "../../base/errors/start-error.js";
import { checkChainSchema } from "../../db/migrations/migrate.js";
import { openForReading } from "../../db/open.js";
import { rejectUnfinishedCopy } from "../../db/copies/copy-progress.js";
import { loadPeers } from "../../peers/address-book/peer-store.js";
import type { StoredPeer } from "../../peers/address-book/peer.js";

export interface SavedDatabase {
  readonly genesis: Genesis;
  readonly head: { readonly number: number; readonly hash: string };
  /** Public key of the node that owns the database; null while the database has no owner. */
  readonly owner: string | null;
  readonly peers: readonly StoredPeer[];
}

/**
 * Reads the description of a database.
 *
 * @throws DatabaseError, StartError with a message that says why the database cannot be used.
 */
export async function describeDatabase(url: string): Promise<SavedDatabase> {
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
      owner: (await readLease(read)).identity ?? null,
      peers: await loadPeers(read),
    };
  } finally {
    await database.close();
  }
}
