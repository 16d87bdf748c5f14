/** The chain in the database: its blocks, its mempool and its senders, put together. */
import type { Database, DatabaseTransaction, Queries } from "../db/database.js";
import { createBlockChanges, createBlockStore, tryWrite } from "./block-store.js";
import { findFate } from "./fate.js";
import { createMempoolStore } from "./mempool-store.js";
import { createSenderStore } from "./sender-store.js";
import type { ChainChanges, ChainStore } from "./store.js";

/**
 * Builds the store.
 *
 * @param stateIn what transactions change beside the chain, inside the transaction of their block.
 */
export function createChainStore<State>(database: Database, stateIn: (db: Queries) => State): ChainStore<State> {
  const { read, write } = database;
  const blocks = createBlockStore(read);
  const mempool = createMempoolStore(database.mempool);
  return {
    ...blocks,
    mempool,
    insertGenesis: (genesis) => createBlockChanges(write).insertGenesis(genesis),
    lastNonce: (sender) => createSenderStore(read).lastNonce(sender),
    fate: (hash) =>
      findFate(hash, {
        isPending: (asked) => mempool.isPending(asked),
        blockOf: (asked) => blocks.blockOf(asked),
        rejectionOf: (asked) => mempool.rejectionOf(asked),
      }),
    oldestPending: (limit) => mempool.oldestPending(limit),
    async pendingCount() {
      const [count] = await Promise.all([mempool.pendingCount(), read.first((sql) => sql("senders").select("nonce"))]);
      return count;
    },
    tryWrite: () => tryWrite(database),
    write: (work) => database.transaction((db) => work(changesIn(db), stateIn(db))),
  };
}

function changesIn(db: DatabaseTransaction): ChainChanges {
  const blocks = createBlockChanges(db);
  const senders = createSenderStore(db);
  return {
    attempt: (work) => db.attempt(work),
    included: (hashes) => blocks.included(hashes),
    lastNonces: (identities) => senders.lastNonces(identities),
    async insertTransactions(transactions, blockNumber) {
      await blocks.insertTransactions(transactions, blockNumber);
      // The last one of each sender has its largest nonce.
      await senders.saveNonces(new Map(transactions.map(({ body }) => [body.sender, body.nonce])));
    },
    insertBlock: (block) => blocks.insertBlock(block),
  };
}
