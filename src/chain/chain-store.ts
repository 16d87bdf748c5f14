/** The chain in the database: its blocks, its mempool and its senders, put together. */
import type { Database, DatabaseTransaction, Queries } from "../db/database.js";
import { createBlockChanges, createBlockStore } from "./block-store.js";
import { createMempoolChanges, createMempoolStore, tryWrite } from "./mempool-store.js";
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
  const mempool = createMempoolStore(database);
  return {
    ...blocks,
    ...mempool,
    insertGenesis: (genesis) => createBlockChanges(write).insertGenesis(genesis),
    lastNonce: (sender) => createSenderStore(read).lastNonce(sender),
    async fate(hash) {
      // In the order in which it moves: what is gone from one place has arrived at the next one already.
      if (await mempool.isPending(hash)) {
        return { status: "pending" };
      }
      const blockNumber = await blocks.blockOf(hash);
      if (blockNumber !== undefined) {
        return { status: "included", blockNumber };
      }
      const reason = await mempool.rejectionOf(hash);
      return reason === undefined ? undefined : { status: "rejected", reason };
    },
    tryWrite: () => tryWrite(database),
    write: (work) => database.transaction((db) => work(changesIn(db), stateIn(db))),
  };
}

function changesIn(db: DatabaseTransaction): ChainChanges {
  const blocks = createBlockChanges(db);
  const mempool = createMempoolChanges(db);
  const senders = createSenderStore(db);
  return {
    attempt: (work) => db.attempt(work),
    included: (hashes) => blocks.included(hashes),
    lastNonces: (identities) => senders.lastNonces(identities),
    async insertTransactions(transactions, blockNumber) {
      await blocks.insertTransactions(transactions, blockNumber);
      // The last one of each sender has its largest nonce.
      await senders.saveNonces(new Map(transactions.map(({ body }) => [body.sender, body.nonce])));
      await mempool.remove(transactions.map(({ hash }) => hash));
    },
    insertBlock: (block) => blocks.insertBlock(block),
    reject: (hash, reason, rejectedMs) => mempool.reject(hash, reason, rejectedMs),
  };
}
