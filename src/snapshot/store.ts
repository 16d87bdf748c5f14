/** File store of the snapshots that this node offers to peers. */
import { existsSync } from "node:fs";
import { readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { inflate } from "node:zlib";
import { sha256, toHex32 } from "../base/crypto/hash.js";
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

/** Stored snapshots, and a folder for the creation of the next one. */
export interface SnapshotStore {
  /** Returns all snapshots, latest first. */
  list(): readonly SnapshotDescription[];
  /** Returns a compressed chunk; undefined if it does not exist or is corrupt. */
  chunk(id: string, index: number): Promise<Uint8Array | undefined>;
  /** Returns the path of a folder for a new snapshot. The folder does not exist yet. */
  newFolder(): Promise<string>;
  /** Adds the snapshot that was created in that folder, for the state after this block. */
  add(number: bigint, bytes: Uint8Array): Promise<void>;
}

interface StoredSnapshot extends SnapshotDescription {
  readonly number: bigint;
  readonly folder: string;
  /** Time of the last request of a chunk; -Infinity before the first. */
  requestedMs: number;
}

/** Opens the snapshot store. Deletes snapshots that are incomplete, unreadable or from another chain. */
export async function openSnapshotStore({
  folder,
  numberOf,
  nowMs,
  onCorrupt,
}: SnapshotStoreDeps): Promise<SnapshotStore> {
  let stored: readonly StoredSnapshot[] = [];
  const draft = join(folder, draftName);

  async function load(path: string): Promise<StoredSnapshot | undefined> {
    try {
      const description = decodeDescription(await readFile(join(path, descriptionName)));
      const number = await numberOf(description.snapshot.header);
      return number === undefined ? undefined : { ...description, number, folder: path, requestedMs: -Infinity };
    } catch {
      return undefined;
    }
  }

  async function remove(snapshot: Pick<StoredSnapshot, "folder">): Promise<void> {
    stored = stored.filter(({ folder: path }) => path !== snapshot.folder);
    await rm(snapshot.folder, { recursive: true, force: true });
  }

  /** Removes the snapshots that are neither among the latest nor requested recently. */
  async function removeOld(): Promise<void> {
    const [, ...older] = stored.slice(retainedSnapshots - 1);
    for (const [i, one] of older.entries()) {
      if (one.requestedMs + retainForMs < nowMs() || i + retainedSnapshots >= maxSnapshots) {
        await remove(one);
      }
    }
  }

  const byNumber = (a: StoredSnapshot, b: StoredSnapshot): number => Number(b.number - a.number);
  if (existsSync(folder)) {
    for (const name of await readdir(folder)) {
      const path = join(folder, name);
      const found = name === draftName ? undefined : await load(path);
      stored = found === undefined ? stored : [...stored, found].sort(byNumber);
      if (found === undefined) {
        await rm(path, { recursive: true, force: true });
      }
    }
  }

  return {
    list: () => stored,

    async chunk(id, index) {
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
      } catch {
        // Treated like a chunk with the wrong content.
      }
      onCorrupt(path);
      await remove(found);
      return undefined;
    },

    async newFolder() {
      await createPrivateDirectory(folder);
      await rm(draft, { recursive: true, force: true });
      return draft;
    },

    async add(number, bytes) {
      const description = decodeDescription(bytes);
      const path = join(folder, `${number}-${description.id.slice(2, 18)}`);
      await rm(path, { recursive: true, force: true });
      await rename(draft, path);
      await syncDirectory(folder);
      stored = [
        { ...description, number, folder: path, requestedMs: -Infinity },
        ...stored.filter((one) => one.folder !== path),
      ].sort(byNumber);
      await removeOld();
    },
  };
}
