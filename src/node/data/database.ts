/** Database of a node: opening, ownership, and the choice of the one writer among several nodes. */
import { existsSync } from "node:fs";
import { loadNodeKey, loadOrCreateNodeKey, type NodeKey, nodeKeyPath } from "../../base/crypto/node-key.js";
import { ensurePrivateDirectory } from "../../base/files/private-files.js";
import { InputError, StartError } from "../../base/errors/start-error.js";
import { describeHolder } from "../../chain/writer/writer-lease.js";
import { createWriterLeaseStore } from "../../chain/writer/writer-lease-store.js";
import { checkSchema, migrate } from "../migrations/migrate.js";
import type { Database } from "../../db/queries/database.js";
import { type Access, openDatabase } from "../../db/open.js";
import { rejectUnfinishedCopy } from "./copies/copy-progress.js";
import type { Config } from "../../config/config.js";
import { untilDatabaseResponds } from "../lifecycle/database-wait.js";
import type { NodeCore } from "../lifecycle/core.js";

/** Access to the database by role. */
const accessOf = { writer: "write", standby: "follow", reader: "read" } as const satisfies Record<
  Config["role"],
  Access
>;

/**
 * Opens the database of a node in a process that only reads it. The reads of a writer's process go to the primary if
 * there is one, so that they are as recent as the node's.
 */
export async function openWorkerDatabase({
  databaseUrl,
  role,
}: Pick<Config, "databaseUrl" | "role">): Promise<Database> {
  const database = await openDatabase(databaseUrl, role === "writer" ? "write" : "read");
  // The process follows the blocks of whichever server it reads.
  database.allowStandbyReads({ isCurrent: () => Promise.resolve(true), onMoved: () => undefined });
  return database;
}

/**
 * Opens the database, and waits if it is unavailable or locked. Only a database without a writer lease, such as a new
 * one, is migrated here. Any other is migrated once the writer holds the lease. Throws StartError, DatabaseError.
 */
export async function openNodeDatabase(
  core: Pick<NodeCore, "config" | "lifecycle" | "log" | "onShutdown" | "subsystems" | "warn">,
): Promise<Database> {
  const { config, log, onShutdown, warn } = core;
  if (await ensurePrivateDirectory(config.dataDir)) {
    log.warn(
      { directory: config.dataDir },
      "The data directory was accessible to other users; the node has restricted it to its owner",
    );
  }
  let warnings: readonly string[] = [];
  const database = await untilDatabaseResponds(core, async () => {
    const opened = await openDatabase(config.databaseUrl, accessOf[config.role]);
    try {
      await prepare(config, opened);
      warnings = config.role === "writer" ? await opened.durabilityRisks() : [];
      return opened;
    } catch (error) {
      await opened.close();
      throw error;
    }
  });
  onShutdown("the database", () => database.close());
  warnings.forEach((message) => warn("chain", message));
  return database;
}

/** Checks that the database suits this node, and migrates a new database. */
async function prepare(config: Config, database: Database): Promise<void> {
  await rejectUnfinishedCopy(database.read);
  if (config.role === "standby" && database.files !== undefined) {
    throw new StartError(
      "A standby requires PostgreSQL, as a SQLite file belongs to one machine; start another node that follows this one instead.",
    );
  }
  if (config.role !== "writer") {
    await checkSchema(database);
    return;
  }
  const lease = createWriterLeaseStore(database);
  if ((await database.files?.lock()) === false) {
    const holder = (await lease.exists().catch(() => false)) ? describeHolder(await lease.read()) : "Another process";
    throw new StartError(`${holder} writes to the database ${config.databaseUrl}; stop it first.`);
  }
  if (!(await lease.exists())) {
    await migrate(database);
  }
}

/**
 * Loads the node key from the data directory. Except on a reader, the key must be that of the database's owner. Creates
 * a key only if the database has no owner, or if the operator starts a writer with `--recover`. Throws InputError if
 * the key is missing or belongs to another node.
 */
export async function loadIdentity(
  { config, log }: Pick<NodeCore, "config" | "log">,
  database: Database,
): Promise<NodeKey> {
  const { role, recover, dataDir } = config;
  if (role === "reader") {
    return await loadOrCreateNodeKey(dataDir);
  }
  const { identity: owner } = await createWriterLeaseStore(database).read();
  const mayTakeOver = role === "writer" && recover;
  const remedy = `Restore the key from the backup${role === "writer" ? ", or start with --recover to take it over" : ""}.`;
  const path = nodeKeyPath(dataDir);
  if (owner !== undefined && !mayTakeOver && !existsSync(path)) {
    throw new InputError(`The database belongs to the node ${owner}, whose key is not at ${path}. ${remedy}`);
  }
  const key = await (existsSync(path) ? loadNodeKey(path) : loadOrCreateNodeKey(dataDir));
  if (owner !== undefined && owner !== key.publicKey) {
    if (!mayTakeOver) {
      throw new InputError(`The database belongs to the node ${owner}; this key is ${key.publicKey}. ${remedy}`);
    }
    log.warn({ subsystem: "chain" }, `The key ${key.publicKey} takes over the database of the node ${owner}`);
  }
  return key;
}
