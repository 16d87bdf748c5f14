/** Store of the chain: combines the block, mempool and sender stores of one database. */
import type { Database, DatabaseTransaction, Queries } from "../db/queries/database.js";
import { createBlockChanges, createBlockStore, tryBlockWrite } from "./blocks/block-store.js";
import { type Fence, fencePart, noFence } from "./writer/fence-store.js";
import { createListings } from "./blocks/listing-store.js";
import { createMempoolStore, findTransactionStatus } from "./mempool/mempool-store.js";
import { createSenderStore } from "./blocks/sender-store.js";
import type { ChainChanges, ChainStore } from "./blocks/store.js";

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
  const fencedTransaction = <T>(work: (db: DatabaseTransaction) => Promise<T>): Promise<T> =>
    database.transaction((db) => fence.blocks(db, () => work(db)));
  const blocks = createBlockStore(read);
  const mempool = createMempoolStore(fencePart(database.mempool, fence.mempool));
  return {
    ...blocks,
    ...createListings(read),
    mempool,
    insertGenesis: (genesis) => fencedTransaction((db) => createBlockChanges(db).insertGenesis(genesis)),
    lastNonce: (sender) => createSenderStore(read).lastNonce(sender),
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
      fencedTransaction(async (db) => {
        if (latest !== undefined) {
          await createBlockChanges(db).checkLatest(latest);
        }
        return await work(changesIn(db), stateIn(db));
      }),
  };
}

/** Creates the access to the chain inside one database transaction. */
function changesIn(db: DatabaseTransaction): ChainChanges {
  const blocks = createBlockChanges(db);
  const senders = createSenderStore(db);
  return {
    isUsable: () =>
      db
        .rows((sql) => sql.raw("SELECT 1"))
        .then(() => true)
        .catch(() => false),
    included: (hashes) => blocks.included(hashes),
    lastNonces: (identities) => senders.lastNonces(identities),
    async insertTransactions(transactions, blockNumber) {
      await blocks.insertTransactions(transactions, blockNumber);
      // Nonces of a sender increase, so the last entry in the map is the largest.
      await senders.saveNonces(new Map(transactions.map(({ body }) => [body.sender, body.nonce])));
    },
    insertBlock: (block) => blocks.insertBlock(block),
  };
}
