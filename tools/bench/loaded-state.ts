/** Loads state without applying blocks. The header of the first block contains its root, so the node accepts it. */
import { openDatabase } from "../../src/db/open.js";
import type { Database } from "../../src/db/queries/database.js";
import { createStateTreeChanges } from "../../src/state/state-tree-store.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import type { LeafChange } from "../../src/tree/change.js";
import { genesisOf, type TestKey, testKey } from "../../test/helpers/chain/keys.js";
import { openChain } from "../../test/helpers/chain/chain.js";
import { createPublic, signTransaction } from "../../test/helpers/chain/transactions.js";

/** Inserts leaves into the state tree, as if they had been in the genesis. */
export async function plantLeaves(database: Database, leaves: readonly LeafChange[]): Promise<void> {
  await database.transaction(async (db) => {
    await createStateTreeChanges(db).change(0n, leaves);
    await db.run((sql) => sql("tree_undo").delete());
  });
}

/**
 * Creates block 1 with one transaction, on a chain with these authorities (`genesisOf`). The first authority produces
 * it.
 *
 * @param plant inserts the loaded data into the state tree.
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
