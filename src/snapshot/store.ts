/** File store of the snapshots that this node offers to peers. */
import { existsSync } from "node:fs";
import { readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { inflate } from "node:zlib";
import { sha256, toHex32 } from "../base/crypto/hash.js";
import { isDatabaseError } from "../base/errors/database-error-kind.js";
import { readFailureOf } from "../base/errors/read-failure.js";
import { createPrivateDirectory } from "../base/files/private-files.js";
import { syncDirectory } from "../base/files/sync-path.js";
import { maxChunkBytes, type SnapshotDescription, decodeDescription } from "./format.js";
import { chunkName, descriptionName } from "./build.js";

const decompress = promisify(inflate);

/** Number of latest snapshots to retain. */
const retainedSnapshots = 2;
/** Time since the last request of a chunk for which an older snapshot is still retained. */
const retainForMs = 600_000;
/** Hard limit on stored snapshots. */
const maxSnapshots = 4;

/** Name of the folder in which a snapshot is created. */
const draftName = "making";

export interface SnapshotStoreDeps {
  readonly folder: string;
  /** Returns the block number of a header; undefined if the header is not part of this chain. */
  readonly numberOf: (header: Uint8Array) => Promise<bigint | undefined>;
  readonly nowMs: () => number;
  /** Called with the path of a corrupt file. */
  readonly onCorrupt: (path: string) => void;
}

interface StoredSnapshot extends SnapshotDescription {
  readonly number: bigint;
  readonly folder: string;
  /** Time of the last request of a chunk; -Infinity before the first. */
  requestedMs: number;
}

export type SnapshotStore = Awaited<ReturnType<typeof openSnapshotStore>>;

/**
 * Opens the store of snapshots, with a folder for the creation of the next one. Deletes snapshots that are incomplete,
 * corrupt or from another chain. Keeps those that cannot be read, for the next start.
 */
export async function openSnapshotStore({ folder, numberOf, nowMs, onCorrupt }: SnapshotStoreDeps) {
  /** Snapshots, latest first. */
  let stored: readonly StoredSnapshot[] = [];
  const draft = join(folder, draftName);

  async function load(path: string): Promise<void> {
    const description = decodeDescription(await readFile(join(path, descriptionName)));
    const number = await numberOf(description.snapshot.header);
    if (number === undefined) {
      throw new Error("The snapshot is from another chain.");
    }
    insert(description, number, path);
  }

  function insert(description: SnapshotDescription, number: bigint, path: string): void {
    stored = [
      ...stored.filter((one) => one.folder !== path),
      { ...description, number, folder: path, requestedMs: -Infinity },
    ].sort((a, b) => Number(b.number - a.number));
  }

  async function remove(path: string): Promise<void> {
    stored = stored.filter((one) => one.folder !== path);
    await rm(path, { recursive: true, force: true });
  }

  for (const name of existsSync(folder) ? await readdir(folder) : []) {
    const path = join(folder, name);
    await (name === draftName
      ? remove(path)
      : load(path).catch((error: unknown) => (isUnreadable(error) ? undefined : remove(path))));
  }

  return {
    list: (): readonly SnapshotDescription[] => stored,

    /** Returns a compressed chunk; undefined if it does not exist or is corrupt. Rejects if it cannot be read. */
    async chunk(id: string, index: number): Promise<Uint8Array | undefined> {
      const found = stored.find((one) => one.id === id);
      const described = found?.snapshot.chunks[index];
      if (found === undefined || described?.node.case === undefined) {
        return undefined;
      }
      found.requestedMs = nowMs();
      const path = join(found.folder, chunkName(index));
      try {
        const bytes = await readFile(path);
        const content = await decompress(bytes, { maxOutputLength: maxChunkBytes });
        if (sha256(content) === toHex32(described.sha256)) {
          return bytes;
        }
      } catch (error) {
        if (isUnreadable(error)) {
          throw error;
        }
        // Treated like a chunk with the wrong content.
      }
      onCorrupt(path);
      await remove(found.folder);
      return undefined;
    },

    /** Returns the path of a folder for a new snapshot. The folder does not exist yet. */
    async newFolder(): Promise<string> {
      await createPrivateDirectory(folder);
      await rm(draft, { recursive: true, force: true });
      return draft;
    },

    /**
     * Adds the snapshot that was created in that folder, for the state after this block. Removes older ones that were
     * not requested recently.
     */
    async add(number: bigint, bytes: Uint8Array): Promise<void> {
      const description = decodeDescription(bytes);
      const path = join(folder, `${number}-${description.id.slice(2, 18)}`);
      await rm(path, { recursive: true, force: true });
      await rename(draft, path);
      await syncDirectory(folder);
      insert(description, number, path);
      for (const [i, one] of stored.entries()) {
        if (i >= maxSnapshots || (i >= retainedSnapshots && one.requestedMs + retainForMs < nowMs())) {
          await remove(one.folder);
        }
      }
    },
  };
}

/** Returns true if the disk or the database cannot be read, which says nothing about the snapshot. */
function isUnreadable(error: unknown): boolean {
  return readFailureOf(error) !== undefined || isDatabaseError(error);
}
