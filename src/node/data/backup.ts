/**
 * Backup of a node: its key, its database and the files that it is started with. The node may run meanwhile. The manifest
 * is the file that is written last; without it there is no backup.
 */
import { createHash, randomBytes } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import { readFile, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, extname, join } from "node:path";
import { z } from "zod";
import { hex32 } from "../../base/crypto/hash.js";
import { loadNodeKey, nodeKeyPath } from "../../base/crypto/node-key.js";
import { createPrivateDirectory, writeNewFile } from "../../base/files/private-files.js";
import { readFailureOf } from "../../base/errors/read-failure.js";
import { StartError } from "../../base/errors/start-error.js";
import { syncDirectory } from "../../base/files/sync-path.js";
import { version } from "../../base/version.js";
import type { Config } from "../../config/config.js";
import { findFile } from "../../config/data-dir-files.js";
import { fileOf, mempoolSuffix } from "../../db/open.js";
import { removeAuxiliaryFiles } from "../../db/sqlite-files.js";
import { type OnBackupProgress, backupDatabase } from "./copies/online-backup.js";
import { describeDatabase } from "./saved-database.js";

export const backupNames = {
  manifest: "backup.json",
  key: "identity.key",
  genesis: "genesis.json",
  peers: "peers.json",
  writers: "writers.json",
  database: "gatehouse.sqlite",
} as const;

/** Version of the backup format. It increases when an older Gatehouse could not restore a newer backup. */
const formatVersion = 1;

const manifest = z.object({
  format: z.literal("gatehouse backup"),
  formatVersion: z.number().int(),
  gatehouse: z.string(),
  madeMs: z.number().int(),
  /** Public key of the node that owns the database; null if the database had no owner. */
  node: z.string().regex(hex32).nullable(),
  /** Public key of the node key in the backup; null for a backup without a key. */
  key: z.string().regex(hex32).nullable(),
  network: z.string().regex(hex32),
  head: z.object({ number: z.number().int(), hash: z.string().regex(hex32) }),
  engine: z.enum(["sqlite", "postgresql"]),
  /** Name of the configuration file; null without one. */
  config: z.string().nullable(),
  files: z.array(
    z.object({
      name: z.string().regex(/^[^/\\]+$/),
      sizeBytes: z.number().int(),
      /** SHA-256 of the content, 0x and 64 hex digits. */
      sha256: z.string().regex(hex32),
    }),
  ),
});

export type BackupManifest = z.infer<typeof manifest>;

/**
 * Reads the manifest of a backup. Throws StartError if there is no backup, if the manifest is corrupt, or if this
 * version cannot restore the backup.
 */
export async function readManifest(folder: string): Promise<BackupManifest> {
  const path = join(folder, backupNames.manifest);
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    const failure = readFailureOf(error);
    if (failure !== undefined) {
      throw new StartError(`The file ${path} cannot be read (${failure}); check its disk.`);
    }
    throw new StartError(
      `There is no complete backup at ${folder}: ${backupNames.manifest} is missing, which is written last.`,
    );
  });
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new StartError(`The file ${path} is corrupt: it is not JSON. Use another backup.`);
  }
  const { error, data } = manifest.safeParse(json);
  if (data === undefined) {
    const member = error.issues[0]?.path.join(".") ?? "";
    throw new StartError(`The file ${path} is corrupt${member === "" ? "" : ` at ${member}`}. Use another backup.`);
  }
  if (data.formatVersion > formatVersion) {
    throw new StartError(
      `The backup was created by Gatehouse ${data.gatehouse}, in a format that this version does not support; restore it with that version.`,
    );
  }
  return data;
}

export async function describeFile(folder: string, name: string): Promise<BackupManifest["files"][number]> {
  const path = join(folder, name);
  const hash = createHash("sha256");
  for await (const bytes of createReadStream(path)) {
    hash.update(bytes as Buffer);
  }
  return { name, sizeBytes: (await stat(path)).size, sha256: `0x${hash.digest("hex")}` };
}

interface BackupDeps {
  readonly config: Config;
  readonly configFile: string | undefined;
  /** Folder of the backup, which must not exist yet. */
  readonly folder: string;
  readonly withKey: boolean;
  readonly onSaved: OnBackupProgress;
  /** Called with the path of the backup while it is incomplete. */
  readonly onDraft: (path: string) => void;
}

/**
 * Creates a backup. The backup has a draft name until it is complete and on disk. Throws StartError, DatabaseError with
 * a message that says why there is no backup.
 */
export async function createBackup(deps: BackupDeps): Promise<BackupManifest> {
  const { config, folder, withKey, onDraft } = deps;
  if (existsSync(folder)) {
    throw new StartError(`${folder} already exists; give a new folder.`);
  }
  const keyPath = nodeKeyPath(config.dataDir);
  if (withKey && !existsSync(keyPath)) {
    throw new StartError(
      `There is no key at ${keyPath}, and a restored node has no identity without it; give the node's --data-dir, or, if you ` +
        "store its key elsewhere, --without-key.",
    );
  }
  const parent = dirname(folder);
  const draft = join(parent, `.${basename(folder)}.${randomBytes(4).toString("hex")}.draft`);
  await createPrivateDirectory(parent);
  onDraft(draft);
  try {
    await createPrivateDirectory(draft);
    const manifest = await writeFiles(draft, deps, keyPath);
    await syncDirectory(draft);
    await rename(draft, folder);
    await syncDirectory(parent);
    return manifest;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Writes all files of the backup into the draft folder, the manifest last. */
async function writeFiles(draft: string, deps: BackupDeps, keyPath: string): Promise<BackupManifest> {
  const { config, withKey, onSaved } = deps;
  const database = join(draft, backupNames.database);
  await backupDatabase(config.databaseUrl, database, onSaved);
  const { genesis, head, owner } = await describeDatabase(`sqlite:${database}`);
  await removeAuxiliaryFiles(database);
  const names: string[] = [backupNames.database, `${backupNames.database}${mempoolSuffix}`];
  const add = async (name: string, content: string | Uint8Array | undefined): Promise<void> => {
    if (content !== undefined) {
      await writeNewFile(join(draft, name), content);
      names.push(name);
    }
  };
  const configName = deps.configFile === undefined ? null : `config${extname(deps.configFile)}`;
  await add(backupNames.genesis, genesis.text);
  await add(backupNames.peers, await readIfNamed(findFile(config.dataDir, config.peersFile, "peers")));
  await add(backupNames.writers, await readIfNamed(config.writersFile));
  await add(configName ?? "", await readIfNamed(deps.configFile));
  const key = withKey ? await loadNodeKey(keyPath) : undefined;
  await add(backupNames.key, key && (await readFile(keyPath)));
  const files = [];
  for (const name of names) {
    files.push(await describeFile(draft, name));
  }
  const manifest: BackupManifest = {
    ...{ format: "gatehouse backup", formatVersion, gatehouse: version, madeMs: Date.now() },
    ...{ node: owner, key: key?.publicKey ?? null, network: genesis.hash, head },
    engine: fileOf(config.databaseUrl) === undefined ? "postgresql" : "sqlite",
    config: configName,
    files,
  };
  await writeNewFile(join(draft, backupNames.manifest), `${JSON.stringify(manifest, null, 2)}\n`);
  return manifest;
}

async function readIfNamed(path: string | undefined): Promise<Buffer | undefined> {
  return path === undefined ? undefined : await readFile(path);
}
