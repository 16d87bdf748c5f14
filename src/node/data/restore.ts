/** Restores a data directory from a backup, once every file in the backup is verified. */
import { existsSync } from "node:fs";
import { copyFile, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { loadNodeKey } from "../../base/crypto/node-key.js";
import { ensurePrivateDirectory, createPrivateDirectory, privateFileMode } from "../../base/files/private-files.js";
import { readFailureOf } from "../../base/errors/read-failure.js";
import { StartError } from "../../base/errors/start-error.js";
import { syncDirectory } from "../../base/files/sync-path.js";
import type { Finding, Verification } from "../../base/errors/verification.js";
import { writeDataDirFile } from "../../config/data-dir-files.js";
import { migrate } from "../migrations/migrate.js";
import { mempoolSuffix, withDatabase } from "../../db/open.js";
import { removeAuxiliaryFiles } from "../../db/sqlite-files.js";
import { isFromOperator } from "../../peers/address-book/peer.js";
import { backupNames, type BackupManifest, describeFile, readManifest } from "./backup.js";
import { describeDatabase, type SavedDatabase } from "./saved-database.js";
import { openStoredData } from "./stored-data.js";

interface RestoreDeps {
  readonly folder: string;
  /** Target directory, which must be empty or missing. */
  readonly dataDir: string;
  /** Runs the verification of the database, and returns the corrupt items. */
  readonly verify: (verification: Verification) => Promise<readonly Finding[]>;
  readonly onCopied: (done: number, total: number) => void;
}

export interface Restored {
  readonly manifest: BackupManifest;
  readonly isAuthority: boolean;
  /** URLs for clients of the peers that the operator has named. */
  readonly peers: readonly string[];
}

/** Folder in which the files are assembled. An interrupted restore leaves nothing but this folder. */
const stagingName = "restoring";
/** Names that an empty directory may contain: those of a new file system or of an interrupted restore. */
const ignored = ["lost+found", stagingName];

/**
 * Restores a backup. Throws StartError, DatabaseError with a message that says what is wrong. The directory is then
 * unchanged.
 */
export async function restoreBackup({ folder, dataDir, verify, onCopied }: RestoreDeps): Promise<Restored> {
  const manifest = await readManifest(folder);
  if (existsSync(dataDir) && (await readdir(dataDir)).some((name) => !ignored.includes(name))) {
    throw new StartError(`The directory ${dataDir} is not empty; give a new --data-dir.`);
  }
  const staging = join(dataDir, stagingName);
  await ensurePrivateDirectory(dataDir);
  await rm(staging, { recursive: true, force: true });
  await createPrivateDirectory(staging);
  try {
    await copyFiles(folder, staging, manifest, onCopied);
    const saved = await verifyFiles(staging, manifest, verify);
    const isAuthority = manifest.node !== null && saved.genesis.authorities.includes(manifest.node);
    const names = manifest.files.map(({ name }) => name);
    if (isAuthority) {
      // The original node may still run. Two block producers that never connect would not detect their fork.
      names.push(basename(await writeDataDirFile(staging, "restored", `${new Date(manifest.madeMs).toISOString()}\n`)));
    }
    await moveIntoPlace(staging, dataDir, names);
    return {
      manifest,
      isAuthority,
      peers: saved.peers.filter(isFromOperator).flatMap(({ connectionString }) => connectionString ?? []),
    };
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

async function copyFiles(
  folder: string,
  staging: string,
  { files }: BackupManifest,
  onCopied: RestoreDeps["onCopied"],
): Promise<void> {
  for (const [i, { name, sizeBytes, sha256 }] of files.entries()) {
    onCopied(i, files.length);
    await copyPrivately(join(folder, name), join(staging, name)).catch(async (error: unknown) => {
      await describeFile(folder, name).catch((unreadable: unknown) => {
        const failure = readFailureOf(unreadable);
        throw new StartError(
          failure === undefined
            ? `The backup is corrupt: the file ${name} is missing. Use another backup.`
            : `The file ${name} of the backup cannot be read (${failure}); check its disk, or use another backup.`,
        );
      });
      throw new StartError(
        `The file ${name} cannot be written to ${dirname(staging)} (${(error as NodeJS.ErrnoException).code}); free disk space there, or give another --data-dir.`,
      );
    });
    const found = await describeFile(staging, name);
    if (found.sizeBytes !== sizeBytes || found.sha256 !== sha256) {
      throw new StartError(`The backup is corrupt: the file ${name} does not match its hash. Use another backup.`);
    }
  }
  onCopied(files.length, files.length);
}

/** Copies a file to disk with permissions for its owner alone, whatever the mode of the original. */
async function copyPrivately(from: string, to: string): Promise<void> {
  await copyFile(from, to);
  const file = await open(to, "r+");
  try {
    await file.chmod(privateFileMode);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Verifies the files, and compares them with the manifest. */
async function verifyFiles(
  staging: string,
  manifest: BackupManifest,
  verify: RestoreDeps["verify"],
): Promise<SavedDatabase> {
  const path = join(staging, backupNames.database);
  const url = `sqlite:${path}`;
  if (!existsSync(path) || !existsSync(`${path}${mempoolSuffix}`)) {
    throw new StartError("The backup is corrupt: it has no database. Use another backup.");
  }
  await withDatabase(url, migrate);
  const stored = await openStoredData(url);
  try {
    const [finding] = await verify(stored.verification);
    if (finding !== undefined) {
      throw new StartError(
        `The database in the backup is corrupt: ${finding.sentence} Use another backup, or let the node fetch the chain again from its peers.`,
      );
    }
  } finally {
    await stored.close();
  }
  const saved = await describeDatabase(url);
  await removeAuxiliaryFiles(path);
  const { genesis, head, owner } = saved;
  const isSame =
    genesis.hash === manifest.network &&
    owner === manifest.node &&
    head.number === manifest.head.number &&
    head.hash === manifest.head.hash &&
    (manifest.key === null || (await loadNodeKey(join(staging, backupNames.key))).publicKey === manifest.key);
  if (!isSame) {
    throw new StartError(
      `The backup is corrupt: ${backupNames.manifest} does not match its files. Use another backup.`,
    );
  }
  return saved;
}

/**
 * Moves the files into the data directory, the key last. No node starts with an owned database and no key, so an
 * interrupted move is safe.
 */
async function moveIntoPlace(staging: string, dataDir: string, names: readonly string[]): Promise<void> {
  const { database, key } = backupNames;
  const rank = (name: string): number => (name === database ? 0 : name === key ? 2 : 1);
  for (const name of [...names].sort((a, b) => rank(a) - rank(b))) {
    await rename(join(staging, name), join(dataDir, name));
  }
  await syncDirectory(dataDir);
}
