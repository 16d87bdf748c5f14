/**
 * Tells a disk that cannot be read from corrupt data. SQLite reports a failed read (EIO) as corruption, so the files are
 * read before such an error is believed.
 */
import { randomInt } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { isDatabaseCorruption } from "../../base/errors/database-error-kind.js";
import { temporaryError } from "../queries/database.js";

const chunkBytes = 1024 * 1024;
/**
 * Limit on the chunks that one check reads, at random positions of a larger file. A disk that does not respond fails
 * most of them. Data in a few bad sectors is lost, so there it does no harm to report corruption.
 */
const maxChunks = 256;
/** Number of reads after which corruption is believed. A disk that fails now and then may fail twice in a row. */
const maxReads = 3;
/** Interval in milliseconds at which an unreadable disk is read again. */
const retryEveryMs = 1_000;
/**
 * Time in milliseconds in which the second write that meets corruption is believed. A write is not repeated here, and the
 * disk may be readable again before the check.
 */
const doubtMs = 60_000;

/** Called with the error code of the disk when it becomes unreadable, and with undefined when it is readable again. */
export type DiskListener = (code: string | undefined) => void;

export type DiskCheck = ReturnType<typeof createDiskCheck>;

/** Creates the check for a database file and its write-ahead log. */
export function createDiskCheck(path: string) {
  const listeners: DiskListener[] = [];
  const file = shareFile(path);
  let check: Promise<string | undefined> | undefined;
  let problem: string | undefined;
  let timer: NodeJS.Timeout | undefined;
  let doubtedMs = -Infinity;
  let isClosed = false;

  async function readFiles(): Promise<string | undefined> {
    try {
      await file.use(readChunks);
      await withFile(`${path}-wal`, readChunks);
      return undefined;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // A missing file is reported as such.
      return code === "ENOENT" ? undefined : (code ?? "unknown error");
    }
  }

  /** Reads the files. Concurrent callers share a check. */
  async function run(): Promise<string | undefined> {
    check ??= readFiles().finally(() => (check = undefined));
    const code = await check;
    if (code !== problem && !isClosed) {
      problem = code;
      listeners.forEach((listener) => listener(code));
    }
    clearTimeout(timer);
    timer = problem === undefined || isClosed ? undefined : setTimeout(() => void run(), retryEveryMs).unref();
    return code;
  }

  // The error of SQLite, which names corruption, is not kept as the cause.
  const unreadable = (code: string): Error =>
    temporaryError(
      `The disk of ${path} cannot be read (${code}); check the disk. The node continues by itself once it is readable.`,
      "unreadable",
      code,
    );

  async function examine(error: unknown): Promise<unknown> {
    if (!mayBeDisk(error)) {
      return error;
    }
    // While the disk is unreadable, any error may come from it, even if this check would succeed.
    const code = problem ?? (await run());
    return code === undefined ? error : unreadable(code);
  }

  return {
    onChange: (listener: DiskListener) => void listeners.push(listener),
    /** Returns the error to report in place of one of SQLite: that of the disk if it cannot be read, or the same. */
    examine,
    /** Runs a read. Repeats it if it fails although the disk can be read: the disk may have recovered. */
    async runRead<T>(read: () => Promise<T>): Promise<T> {
      for (let attempt = 1; ; attempt++) {
        try {
          return await read();
        } catch (error) {
          const examined = await examine(error);
          if (examined !== error || !mayBeDisk(error) || attempt === maxReads) {
            throw examined;
          }
        }
      }
    },
    /** Runs a write, or a transaction. */
    async runWrite<T>(write: () => Promise<T>): Promise<T> {
      try {
        return await write();
      } catch (error) {
        const examined = await examine(error);
        const isDoubtful =
          examined === error &&
          mayBeDisk(error) &&
          isDatabaseCorruption(error) &&
          performance.now() - doubtedMs > doubtMs;
        if (isDoubtful) {
          doubtedMs = performance.now();
          throw unreadable("one failed read");
        }
        throw examined;
      }
    },
    /** Releases the file. Call this after the connections of SQLite are closed. */
    async close(): Promise<void> {
      isClosed = true;
      clearTimeout(timer);
      await check;
      await file.release();
    },
  };
}

/** Returns true for errors by which SQLite reports a failed read. */
function mayBeDisk(error: unknown): boolean {
  const { code = "" } = error as NodeJS.ErrnoException;
  return /^SQLITE_(CORRUPT|NOTADB|IOERR)/.test(code);
}

/** Reads a file, or random parts of a large one. Rejects with the error of the system. */
async function readChunks(file: FileHandle): Promise<void> {
  const { size } = await file.stat();
  const count = Math.ceil(size / chunkBytes);
  const buffer = Buffer.allocUnsafe(chunkBytes);
  for (let i = 0; i < Math.min(count, maxChunks); i++) {
    const chunk = count <= maxChunks ? i : randomInt(count);
    await file.read(buffer, 0, chunkBytes, chunk * chunkBytes);
  }
}

async function withFile(path: string, work: (file: FileHandle) => Promise<void>): Promise<void> {
  const file = await open(path, "r");
  try {
    await work(file);
  } finally {
    await file.close();
  }
}

interface SharedFile {
  users: number;
  handle: Promise<FileHandle> | undefined;
}

const sharedFiles = new Map<string, SharedFile>();

/**
 * Shares one descriptor of a database file among all databases of this process, until the last one is closed. To close
 * any descriptor of a file gives up all locks that SQLite has on the file in this process.
 */
function shareFile(path: string) {
  const shared = sharedFiles.get(path) ?? { users: 0, handle: undefined };
  sharedFiles.set(path, shared);
  shared.users++;
  return {
    async use(work: (file: FileHandle) => Promise<void>): Promise<void> {
      shared.handle ??= open(path, "r").catch((error: unknown) => {
        shared.handle = undefined;
        throw error;
      });
      await work(await shared.handle);
    },
    async release(): Promise<void> {
      shared.users--;
      if (shared.users === 0) {
        sharedFiles.delete(path);
        const handle = await shared.handle?.catch(() => undefined);
        await handle?.close();
      }
    },
  };
}
