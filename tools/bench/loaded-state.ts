/** State that was loaded without blocks, as a node believes it: the header of a first block names it. */
import { openDatabase } from "../../src/db/open.js";
import type { Database } from "../../src/db/queries/database.js";
import { createStateTreeChanges } from "../../src/state/state-tree-store.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import type { LeafChange } from "../../src/tree/change.js";
import { genesisOf } from "../../test/helpers/chain/genesis.js";
import { openChain } from "../../test/helpers/chain/chain.js";
import { type TestKey, testKey } from "../../test/helpers/chain/keys.js";
import { createPublic, signTransaction } from "../../test/helpers/chain/transactions.js";

/** Puts leaves into the tree of the state, as if the genesis had had them. */
export async function plantLeaves(database: Database, leaves: readonly LeafChange[]): Promise<void> {
  await database.transaction(async (db) => {
    await createStateTreeChanges(db).change(0n, leaves);
    await db.run((sql) => sql("tree_undo").delete());
  });
}

/**
 * Makes block 1 of one transaction, on a chain of these authorities (`genesisOf`), the first of which makes it.
 *
 * @param plant puts what was loaded into the tree of the state.
 */
export async function commitToLoaded(
  url: string,
  authorities: readonly [TestKey, ...TestKey[]],
  plant: (database: Database) => Promise<void>,
): Promise<void> {
  const database = await openDatabase(url);
  try {
    await plant(database);
    const chain = await openChain(database, authorities);
    const network = sha256(genesisOf(...authorities));
    await chain.submit(signTransaction(testKey(99), 1, createPublic("first", "{}"), { network }));
    await chain.produceBlock(authorities[0]);
  } finally {
    await database.close();
  }
}
