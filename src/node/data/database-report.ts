/** Report on a database, created without its node. The node may run meanwhile; nothing is changed. */
import { createBlockStore } from "../../chain/blocks/block-store.js";
import { type Genesis, readStoredGenesis } from "../../chain/blocks/genesis.js";
import { readLease, type StoredLease } from "../../chain/writer/writer-lease-store.js";
import { checkChainSchema } from "../migrations/migrate.js";
import { openForReading } from "../../db/open.js";
import { hasPrivatePrograms } from "../../storage/stores/program-list-store.js";

export { isMissing } from "../../db/open.js";

export interface DatabaseReport {
  /** Corruption that a quick check of the pages finds; empty if there is none. */
  readonly damage: readonly string[];
  /** Reasons why committed data may still be lost. */
  readonly mayBeLost: readonly string[];
  /** Holder of the writer lease, and owner of the database. */
  readonly lease: Pick<StoredLease, "holder" | "leftMs" | "identity">;
  /** Genesis; undefined before the first start with a genesis. */
  readonly genesis: Pick<Genesis, "hash" | "authorities" | "followers"> | undefined;
  readonly hasPrivatePrograms: boolean;
  readonly block: number | undefined;
}

/**
 * Inspects a database. Throws DatabaseError if there is no database, or none that this version can read. Corruption
 * errors of the database are thrown unchanged.
 */
export async function inspectDatabase(url: string): Promise<DatabaseReport> {
  const database = await openForReading(url);
  try {
    await checkChainSchema(database);
    const blocks = createBlockStore(database.read);
    const [damage, mayBeLost, lease, genesis, head, hasPrivate] = await Promise.all([
      database.inspect("quick"),
      database.durabilityRisks(),
      readLease(database.read),
      readStoredGenesis(blocks),
      blocks.head(),
      hasPrivatePrograms(database.read),
    ]);
    return {
      ...{ damage, mayBeLost, lease, genesis, hasPrivatePrograms: hasPrivate },
      block: head === undefined ? undefined : Number(head.number),
    };
  } finally {
    await database.close();
  }
}
