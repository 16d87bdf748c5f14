/** How a database is, seen without its node; it may run meanwhile. Nothing is changed. */
import { createBlockStore } from "../../chain/blocks/block-store.js";
import { type Genesis, readStoredGenesis } from "../../chain/blocks/genesis.js";
import { readLease, type StoredLease } from "../../chain/writer/writer-lease-store.js";
import { checkChainSchema } from "../../db/migrations/migrate.js";
import { isMissing, openForReading } from "../../db/open.js";
import { hasPrivatePrograms } from "../../storage/stores/private-program-store.js";

/** What is found in a database. */
export interface DatabaseReport {
  /** What a quick look at its pages finds; nothing where it is well. */
  readonly damage: readonly string[];
  /** Why what is committed may be lost all the same. */
  readonly mayBeLost: readonly string[];
  /** Who writes to it, and whose it is. */
  readonly lease: Pick<StoredLease, "holder" | "leftMs" | "identity">;
  /** Undefined before the first start with a genesis. */
  readonly genesis: Pick<Genesis, "hash" | "authorities" | "followers"> | undefined;
  /** Whether any program is kept from callers. */
  readonly hasPrivatePrograms: boolean;
  /** Number of the newest block. */
  readonly block: number | undefined;
}

/** Whether there is no database where a node would make one. */
export function hasNoDatabase(url: string): boolean {
  return isMissing(url);
}

/**
 * Looks at a database.
 *
 * @throws DatabaseError when there is none, or none that this version can read; what tells of damage as it is.
 */
export async function inspectDatabase(url: string): Promise<DatabaseReport> {
  const database = await openForReading(url);
  try {
    await checkChainSchema(database);
    const blocks = createBlockStore(database.read);
    const [damage, mayBeLost, lease, genesis, head, hasPrivate] = await Promise.all([
      database.inspect("quick"),
      database.whatMayBeLost(),
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
