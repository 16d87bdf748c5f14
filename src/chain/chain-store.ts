/** Store of the chain: combines the block, mempool and sender stores of one database. */
import type { Database, DatabaseTransaction, Queries } from "../db/queries/database.js";
import { type BlockChanges, createBlockChanges, createBlockStore, tryBlockWrite } from "./blocks/block-store.js";
import { type Fence, noFence } from "./writer/fence-store.js";
import { createListings } from "./blocks/listing-store.js";
import { createMempoolStore, findTransactionStatus } from "./blocks/mempool-store.js";
import { createSenderStore } from "./blocks/sender-store.js";
import type { ChainStore } from "./blocks/store.js";

/**
 * Creates the chain store.
 *
 * @param stateIn creates access to the rest of the state, inside the transaction of a block.
 * @param fence rejects writes of a node that no longer holds the writer lease; the default permits all writes.
 */
export function createChainStore<State>(
  database: Database,
  stateIn: (db: Queries) => State,
  fence: Fence = noFence,
): ChainStore<State> {
  const { read } = database;
  const change = <T>(work: (changes: BlockChanges, db: DatabaseTransaction) => Promise<T>): Promise<T> =>
    database.transaction((db) => fence.blocks(db, () => work(createBlockChanges(db), db)));
  const blocks = createBlockStore(read);
  const senders = createSenderStore(read);
  const mempool = createMempoolStore({
    ...database.mempool,
    transaction: (work) => database.mempool.transaction((db) => fence.mempool(db, () => work(db))),
  });
  return {
    ...blocks,
    ...createListings(read),
    mempool,
    insertGenesis: (genesis) => change((changes) => changes.insertGenesis(genesis)),
    lastNonce: (sender) => senders.lastNonce(sender),
    transactionStatus: (hash) =>
      findTransactionStatus({
        isPending: () => mempool.isPending(hash),
        blockNumber: () => blocks.blockOf(hash),
        rejectionReason: () => mempool.rejectionOf(hash),
      }),
    oldestPending: (limit) => mempool.oldestPending(limit),
    pending: async (hash) => (await mempool.readPending([hash])).get(hash),
    async pendingCount() {
      // The second query checks that the other part of the database responds, too.
      const [count] = await Promise.all([mempool.pendingCount(), read.first((sql) => sql("senders").select("nonce"))]);
      return count;
    },
    tryWrite: () => tryBlockWrite(database),
    write: (latest, work) =>
      change(async (changes, db) => {
        if (latest !== undefined) {
          await changes.checkLatest(latest);
        }
        return await work(changes, stateIn(db));
      }),
  };
}
