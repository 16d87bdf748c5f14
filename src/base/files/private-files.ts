/** Files and directories that only their owner may open, whatever the umask is and whatever there was before. */
import { randomBytes } from "node:crypto";
import { chmod, link, mkdir, open, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isMainThread } from "node:worker_threads";

/** Mode of a file that only its owner may read and write. */
export const privateFileMode = 0o600;
const privateDirectoryMode = 0o700;
/** What others than the owner may do. */
const othersMask = 0o077;
/** Everybody may make files in it, as in /tmp. */
const stickyBit = 0o1000;

/** Makes a directory, and those above it, where there is none; one that is there stays as it is. */
export async function makePrivateDirectory(path: string): Promise<void> {
  if ((await mkdir(path, { recursive: true, mode: privateDirectoryMode })) !== undefined) {
    // The umask may have taken from it what its owner needs.
    await chmod(path, privateDirectoryMode);
  }
}

/**
 * Makes a directory where there is none, and closes one that is open to others.
 *
 * @returns whether it was open to others.
 * @throws Error with one sentence when it stays open to them, or is everybody's.
 */
export async function claimDirectory(path: string): Promise<boolean> {
  await makePrivateDirectory(path);
  const { mode } = await stat(path);
  if (process.platform === "win32" || (mode & othersMask) === 0) {
    return false;
  }
  if ((mode & stickyBit) !== 0) {
    throw new Error(`The data directory ${path} is everybody's; name one of the node's own with --data-dir.`);
  }
  await chmod(path, privateDirectoryMode).catch(() => undefined);
  if (((await stat(path)).mode & othersMask) !== 0) {
    throw new Error(
      `The data directory ${path} can be read by others than the node, which may not change that; as its owner, run: chmod 700 ${path}`,
    );
  }
  return true;
}

/**
 * Writes a new file in a directory that is made where there is none: whole or not at all, under another name first, so that
 * nobody ever reads half of it.
 *
 * @throws the system's error, EEXIST when there is such a file: none is overwritten.
 */
export async function writeNewFile(path: string, content: string | Uint8Array): Promise<void> {
  const directory = dirname(path);
  await makePrivateDirectory(directory);
  const draft = join(directory, `.${randomBytes(8).toString("hex")}.draft`);
  try {
    const file = await open(draft, "wx", privateFileMode);
    try {
      await file.chmod(privateFileMode);
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await link(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}

/** Makes an empty file where there is none; one that is there is closed to others, where it may be. */
export async function claimFile(path: string): Promise<void> {
  try {
    const file = await open(path, "wx", privateFileMode);
    await file.chmod(privateFileMode);
    await file.close();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") {
      await closeFile(path);
    }
  }
}

/** Closes a file to others, if it is there and that is allowed. */
export async function closeFile(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isFile() === true && (found.mode & othersMask) !== 0) {
    await chmod(path, privateFileMode).catch(() => undefined);
  }
}

/**
 * Runs what makes a file without a mode, such as a socket. In a thread it is made with the umask of the process, which
 * threads may not change.
 *
 * @param make makes it before it returns.
 */
export function withPrivateUmask<T>(make: () => T): T {
  if (!isMainThread) {
    return make();
  }
  const before = process.umask(othersMask);
  try {
    return make();
  } finally {
    process.umask(before);
  }
}
