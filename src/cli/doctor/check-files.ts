/** Checks of the node's files other than the database: directory, disk space, key, certificate. */
import { constants } from "node:fs";
import { access, stat, statfs } from "node:fs/promises";
import { loadNodeKey, type NodeKey, nodeKeyPath } from "../../base/crypto/node-key.js";
import type { Config } from "../../config/config.js";
import { attempt, type DoctorCheck, resultsOf } from "./check.js";
import { checkCertificateFiles } from "./check-certificate.js";

const mib = 1024 * 1024;
/** Limits on free disk space. Less is soon used up: a write-ahead log alone may need most of the lower limit. */
const freeSpaceLimits = { warnBytes: 1024 * mib, failBytes: 100 * mib };

/** Runs the checks. Returns the key as well, undefined if it is not usable. */
export async function checkFiles(config: Config): Promise<{ key: NodeKey | undefined; checks: DoctorCheck[] }> {
  const { dataDir } = config;
  const { ok, fail } = resultsOf("key");
  const key = await loadNodeKey(nodeKeyPath(dataDir)).catch((error: unknown) => error as Error);
  const isKey = !(key instanceof Error);
  const checks = [
    await attempt("directory", "Run as the node's user, or give another --data-dir.", () => checkDirectory(dataDir)),
    await attempt("disk", "Give the node's --data-dir.", () => checkFreeSpace(dataDir)),
    isKey
      ? ok(`The node is ${key.publicKey}.`)
      : fail(
          key.message,
          `Restore it from the backup. For a new node, run gatehouse init or gatehouse join, with --data-dir ${dataDir}`,
        ),
    await attempt("certificate", "Correct the files; the node reloads them by itself.", () =>
      checkCertificateFiles(config),
    ),
  ];
  return { key: isKey ? key : undefined, checks };
}

async function checkDirectory(path: string): Promise<DoctorCheck> {
  const { ok, warn, fail } = resultsOf("directory");
  const stats = await stat(path).catch(() => undefined);
  if (stats?.isDirectory() !== true) {
    return fail(
      `There is no directory ${path}.`,
      `Give the node's --data-dir, or create one: gatehouse init or gatehouse join URL, with --data-dir ${path}`,
    );
  }
  await access(path, constants.R_OK | constants.W_OK | constants.X_OK);
  return (stats.mode & 0o077) === 0
    ? ok(`${path} is writable by this user, and closed to others.`)
    : warn(`${path} is accessible to other users.`, `Run: chmod 700 ${path}`);
}

async function checkFreeSpace(path: string): Promise<DoctorCheck> {
  const { ok, warn, fail } = resultsOf("disk");
  const { bavail, bsize } = await statfs(path);
  const bytes = bavail * bsize;
  const found = `${Math.floor(bytes / mib)} MiB are free for ${path}.`;
  const remedy = "Free disk space: with a full disk, a node accepts no writes.";
  if (bytes < freeSpaceLimits.failBytes) {
    return fail(found, remedy);
  }
  return bytes < freeSpaceLimits.warnBytes ? warn(found, remedy) : ok(found);
}
