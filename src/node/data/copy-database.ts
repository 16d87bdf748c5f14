/** Copies the database of a stopped node into another database, of either engine. */
import { StartError } from "../../base/errors/start-error.js";
import { createBlockStore } from "../../chain/blocks/block-store.js";
import { readStoredGenesis } from "../../chain/blocks/genesis.js";
import { describeHolder, isHeld } from "../../chain/writer/writer-lease.js";
import { readLease } from "../../chain/writer/writer-lease-store.js";
import { type CopyOutcome, copyDatabase, type CopyDeps } from "./copies/copy.js";
import type { Database } from "../../db/queries/database.js";
import { checkSchema } from "../migrations/migrate.js";
import { isMissing, describeDatabase, withDatabase, withSource } from "../../db/open.js";
import { rejectUnfinishedCopy } from "./copies/copy-progress.js";

/**
 * Copies a database. `from` and `to` are URLs in the form of --database. Throws StartError, DatabaseError with a
 * message that says why the copy is impossible or incomplete.
 */
export async function copyNodeDatabase({
  from,
  to,
  onProgress,
}: Pick<CopyDeps, "onProgress"> & { readonly from: string; readonly to: string }): Promise<CopyOutcome> {
  if (from === to) {
    throw new StartError("Source and target are the same database; give two different ones.");
  }
  if (isMissing(from)) {
    throw new StartError(`There is no database at ${describeDatabase(from)}; give the database of a node.`);
  }
  return await withSource(from, async (source) => {
    await rejectUnfinishedCopy(source.read);
    await checkSchema(source);
    await requireNoWriter(source, from);
    const sourceState = await describeState(source);
    return await withDatabase(to, async (target) => {
      if ((await target.files?.lock()) === false) {
        throw new StartError(`Another process writes to the database ${describeDatabase(to)}; stop it first.`);
      }
      async function confirm(): Promise<void> {
        if ((await describeState(source)) !== sourceState) {
          throw new StartError(
            `A node wrote to ${describeDatabase(from)} meanwhile, so the copy is outdated; stop the node, empty the target, and start again.`,
          );
        }
      }
      return await copyDatabase({ source, target, sourceState, onProgress, confirm });
    });
  });
}

/**
 * Ensures that no node writes to a database. Locks a SQLite file; checks the writer lease on a server. Throws
 * StartError if a node writes to the database.
 */
async function requireNoWriter(source: Database, url: string): Promise<void> {
  const lease = await readLease(source.read);
  const isFree = source.files === undefined ? !(await isHeld(lease)) : await source.files.lock();
  if (!isFree) {
    throw new StartError(`${describeHolder(lease)} writes to ${describeDatabase(url)}; stop it first.`);
  }
}

/**
 * Returns a text that changes when a writer starts or a block is stored. Throws StartError if the database holds no
 * chain.
 */
async function describeState({ read }: Pick<Database, "read">): Promise<string> {
  const blocks = createBlockStore(read);
  const genesis = await readStoredGenesis(blocks);
  if (genesis === undefined) {
    throw new StartError("The source has no chain yet; start the node once, or start it with the target.");
  }
  const [{ epoch }, head] = [await readLease(read), await blocks.head()];
  return JSON.stringify({ genesis: genesis.hash, head: head?.hash, epoch });
}
