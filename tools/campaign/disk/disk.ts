/**
 * Intercepts the disk access of a node by a preloaded library. The library records writes that are not synced, and can
 * simulate a full disk, or one that cannot be read.
 */
import { access, mkdir, open, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Chance } from "../../../test/helpers/wire/hostile-values.js";
import { succeeds, whyNot } from "../../../test/helpers/process/programs.js";

/** Writes that succeed: all (`room`), those that do not extend a file (`full`), or none (`full in place`). */
export type Fullness = "room" | "full" | "full in place";

const flags: Readonly<Record<Fullness, string>> = { room: "0", full: "1", "full in place": "2" };

/** Reads that fail with EIO: none (`readable`), all (`unreadable`), or only the next one (`unreadable once`). */
export type Readability = "readable" | "unreadable" | "unreadable once";

const readFlags: Readonly<Record<Readability, string>> = { readable: "0", unreadable: "1", "unreadable once": "2" };

/** Disks of the nodes. */
export type Disk = ReturnType<typeof interceptDisks>;

const source = "tools/campaign/disk/watched-disk.c";
const directoryOf = (home: string): string => join(home, "disk");

/** Compiles the library in this directory, if possible. */
export function interceptDisks(directory: string, isEnabled: boolean) {
  const library = join(directory, "watched-disk.so");
  const unavailableReason = isEnabled ? compile(library) : "it is for files of SQLite";
  const flagOf = (home: string): string => join(directoryOf(home), "full");
  const setFlag = async (home: string, flag: string, position: number): Promise<void> => {
    // The node has mapped the file into memory, so write in place.
    const file = await open(flagOf(home), "r+");
    await file.write(flag, position);
    await file.close();
  };
  return {
    /** Reason if writes are not intercepted. */
    unavailableReason,
    /** Returns the environment variables for the node of this directory. */
    async environmentOf(home: string): Promise<Record<string, string>> {
      await mkdir(directoryOf(home), { recursive: true });
      await writeFile(flagOf(home), "00");
      return unavailableReason === undefined ? { LD_PRELOAD: library, CAMPAIGN_DISK: directoryOf(home) } : {};
    },
    /** Fills the disk of a node, or frees it. */
    setFull: (home: string, fullness: Fullness): Promise<void> => setFlag(home, flags[fullness], 0),
    /** Makes reads of the database files of a node fail, or succeed again. */
    setReadable: (home: string, readability: Readability): Promise<void> => setFlag(home, readFlags[readability], 1),
    /**
     * Undoes writes that were not synced when the node was killed: all of them, or a random part, because a disk may have
     * written some. Returns the number of undone writes.
     */
    async losePower(home: string, chance: Chance): Promise<number> {
      // Number of unsynced writes in ten that have reached the disk.
      const survivorsOfTen = chance.pick([0, 0, 5, 9]);
      let lost = 0;
      for (const name of await undoFiles(home)) {
        lost += await undoUnsynced(
          join(home, name),
          join(directoryOf(home), `${name}.undo`),
          () => chance.below(10) < survivorsOfTen,
        );
      }
      const shared = (await readdir(home)).filter((name) => name.endsWith("-shm"));
      await Promise.all(shared.map((name) => rm(join(home, name), { force: true })));
      return lost;
    },
    /** Discards the records of unsynced writes, after the files of the node were removed. */
    async discardUndo(home: string): Promise<void> {
      await Promise.all((await undoFiles(home)).map((name) => truncate(join(directoryOf(home), `${name}.undo`), 0)));
    },
  };
}

/** Compiles the library. Returns the reason if this fails, or if the library cannot be loaded. */
function compile(library: string): string | undefined {
  if (process.platform !== "linux") {
    return "only Linux loads a library before a node";
  }
  const why = whyNot("cc", "-shared", "-fPIC", "-O1", "-o", library, resolve(source), "-ldl", "-lpthread");
  return why ?? (succeeds("env", `LD_PRELOAD=${library}`, "true") ? undefined : "the library does not load");
}

async function undoFiles(home: string): Promise<string[]> {
  const names = await readdir(directoryOf(home));
  return names.filter((name) => name.endsWith(".undo")).map((name) => name.slice(0, -".undo".length));
}

/** Restores the synced content of a file, and then repeats the writes that survived. Returns the number of lost writes. */
async function undoUnsynced(
  path: string,
  undoPath: string,
  hasSurvived: (record: UndoRecord) => boolean,
): Promise<number> {
  const records = readUndo(await readFile(undoPath));
  const exists = await access(path).then(
    () => true,
    () => false,
  );
  if (records.length === 0 || !exists) {
    return 0;
  }
  const file = await open(path, "r+");
  try {
    for (const { offset, lengthBefore, before } of records.toReversed()) {
      await file.truncate(lengthBefore);
      if (before.length > 0) {
        await file.write(before, 0, before.length, offset);
      }
    }
    const surviving = records.filter(hasSurvived);
    for (const { kind, offset, written } of surviving) {
      await (kind === "length" ? file.truncate(offset) : file.write(written, 0, written.length, offset));
    }
    await truncate(undoPath, 0);
    return records.length - surviving.length;
  } finally {
    await file.close();
  }
}

/** Change of a file. */
interface UndoRecord {
  readonly kind: "write" | "length";
  /** Offset of a write; for a change of length, the new length. */
  readonly offset: number;
  readonly lengthBefore: number;
  /** Overwritten bytes; shorter than the write if it extended the file. */
  readonly before: Buffer;
  /** Written bytes. */
  readonly written: Buffer;
}

const headBytes = 5 * 8;

/** Decodes records of unsynced writes, as watched-disk.c writes them, the oldest first. An incomplete record at the end is ignored, since its write did not happen. */
function readUndo(bytes: Buffer): UndoRecord[] {
  const records: UndoRecord[] = [];
  for (let at = 0; at + headBytes <= bytes.length;) {
    const number = (i: number): number => Number(bytes.readBigUInt64LE(at + 8 * i));
    const [kind, offset, lengthBefore, beforeBytes, writtenBytes] = [0, 1, 2, 3, 4].map(number) as [
      ...[number, number, number, number, number],
    ];
    const [from, middle] = [at + headBytes, at + headBytes + beforeBytes];
    at = middle + writtenBytes;
    if (at > bytes.length) {
      break;
    }
    const [before, written] = [bytes.subarray(from, middle), bytes.subarray(middle, at)];
    records.push({ kind: kind === 1 ? "write" : "length", offset, lengthBefore, before, written });
  }
  return records;
}
