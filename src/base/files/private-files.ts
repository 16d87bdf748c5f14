/**
 * Files and directories that only their owner can open, and files that all users can read. Modes do not depend on the
 * umask, or on previous modes.
 */
import { randomBytes } from "node:crypto";
import { chmod, link, mkdir, open, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isMainThread } from "node:worker_threads";

/** Mode of a file that only its owner can read and write. */
export const privateFileMode = 0o600;
/** Mode of a file that all users can read, and only its owner can write. */
export const publicFileMode = 0o644;
const privateDirectoryMode = 0o700;
const otherUsersMask = 0o077;
/** Mode bit of directories that every user can write to, such as /tmp. */
const stickyBit = 0o1000;

/** Creates a directory and its parents. Leaves an existing directory unchanged. */
export async function createPrivateDirectory(path: string): Promise<void> {
  if ((await mkdir(path, { recursive: true, mode: privateDirectoryMode })) !== undefined) {
    // The umask may have removed permissions that the owner needs.
    await chmod(path, privateDirectoryMode);
  }
}

/**
 * Creates a directory, or removes the permissions of other users from an existing one.
 *
 * @returns true if other users had permissions.
 * @throws Error with one sentence if the permissions cannot be removed, or if a shared directory has the sticky bit.
 */
export async function ensurePrivateDirectory(path: string): Promise<boolean> {
  await createPrivateDirectory(path);
  const { mode } = await stat(path);
  if (process.platform === "win32" || (mode & otherUsersMask) === 0) {
    return false;
  }
  if ((mode & stickyBit) !== 0) {
    throw new Error(`The data directory ${path} is shared with other users; give another one with --data-dir.`);
  }
  await chmod(path, privateDirectoryMode).catch(() => undefined);
  if (((await stat(path)).mode & otherUsersMask) !== 0) {
    throw new Error(
      `The data directory ${path} can be read by others than the node, which may not change that; as its owner, run: chmod 700 ${path}`,
    );
  }
  return true;
}

/**
 * Writes a new file atomically, and creates its directory if needed. Writes a temporary file first and links it, so that no
 * process reads an incomplete file.
 *
 * @param mode mode of the file. Default: only its owner can read and write it.
 * @throws the system error; EEXIST if the file exists, because no file is overwritten.
 */
export async function writeNewFile(path: string, content: string | Uint8Array, mode = privateFileMode): Promise<void> {
  const directory = dirname(path);
  await createPrivateDirectory(directory);
  const temporaryPath = join(directory, `.${randomBytes(8).toString("hex")}.draft`);
  try {
    const file = await open(temporaryPath, "wx", mode);
    try {
      await file.chmod(mode);
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await link(temporaryPath, path);
  } finally {
    await rm(temporaryPath, { force: true });
  }
}

/** Creates an empty private file. Removes the permissions of other users from an existing file, if allowed. */
export async function ensurePrivateFile(path: string): Promise<void> {
  try {
    const file = await open(path, "wx", privateFileMode);
    await file.chmod(privateFileMode);
    await file.close();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") {
      await makeFilePrivate(path);
    }
  }
}

/** Removes the permissions of other users from a file, if the file exists and this is allowed. */
export async function makeFilePrivate(path: string): Promise<void> {
  const status = await stat(path).catch(() => undefined);
  if (status?.isFile() === true && (status.mode & otherUsersMask) !== 0) {
    await chmod(path, privateFileMode).catch(() => undefined);
  }
}

/**
 * Runs a function that creates a file without a mode, such as a socket. In a worker thread the umask of the process
 * applies, because threads cannot change it.
 *
 * @param create creates the file synchronously.
 */
export function withPrivateUmask<T>(create: () => T): T {
  if (!isMainThread) {
    return create();
  }
  const previousUmask = process.umask(otherUsersMask);
  try {
    return create();
  } finally {
    process.umask(previousUmask);
  }
}
