/** What is between a node and its disk: what is written and not synced is known, and the disk can be full. */
import { access, mkdir, open, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Chance } from "../../../test/helpers/wire/hostile-values.js";
import { succeeds, whyNot } from "../../../test/helpers/nodes/why-not.js";
import { readUndo, type UndoRecord } from "./undo.js";

/** What a disk still takes: all, what makes no file longer, or nothing, as where a file system writes nothing in place. */
export type Fullness = "room" | "full" | "full in place";

const flags: Readonly<Record<Fullness, string>> = { room: "0", full: "1", "full in place": "2" };

/** The disks of the nodes. */
export interface Disk {
  /** Why they are not watched; undefined where they are. */
  readonly missing: string | undefined;
  /** What a node of this directory is started with. */
  environmentOf(home: string): Promise<Readonly<Record<string, string>>>;
  /** Fills its disk, or makes room. */
  setFull(home: string, fullness: Fullness): Promise<void>;
  /**
   * Takes back what was not synced when the node was killed: all of it, or for each write as chance has it, since a disk
   * may have written some of it. Gives the number of writes that were taken back.
   */
  losePower(home: string, chance: Chance): Promise<number>;
  /** Its files were removed. */
  forget(home: string): Promise<void>;
}

const source = "tools/campaign/disk/watched-disk.c";
const directoryOf = (home: string): string => join(home, "disk");

/** Compiles the library in this directory, where that can be done. */
export function watchDisks(directory: string, isWanted: boolean): Disk {
  const library = join(directory, "watched-disk.so");
  const missing = isWanted ? compile(library) : "it is for files of SQLite";
  const flagOf = (home: string): string => join(directoryOf(home), "full");
  return {
    missing,
    async environmentOf(home): Promise<Record<string, string>> {
      await mkdir(directoryOf(home), { recursive: true });
      await writeFile(flagOf(home), "0");
      return missing === undefined ? { LD_PRELOAD: library, CAMPAIGN_DISK: directoryOf(home) } : {};
    },
    async setFull(home, fullness) {
      // It is mapped by the node: changed where it is.
      const file = await open(flagOf(home), "r+");
      await file.write(flags[fullness], 0);
      await file.close();
    },
    async losePower(home, chance) {
      // Of what was not synced a disk may have everything, some, or nothing.
      const keptOfTen = chance.pick([0, 0, 5, 9]);
      let lost = 0;
      for (const name of await undoFiles(home)) {
        lost += await takeBack(
          join(home, name),
          join(directoryOf(home), `${name}.undo`),
          () => chance.below(10) < keptOfTen,
        );
      }
      const shared = (await readdir(home)).filter((name) => name.endsWith("-shm"));
      await Promise.all(shared.map((name) => rm(join(home, name), { force: true })));
      return lost;
    },
    async forget(home) {
      await Promise.all((await undoFiles(home)).map((name) => truncate(join(directoryOf(home), `${name}.undo`), 0)));
    },
  };
}

/** @returns why there is no library that loads; undefined where there is one */
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

/** Brings a file back to what was synced, and then makes those writes again that reached the disk all the same. */
async function takeBack(path: string, undoPath: string, isKept: (record: UndoRecord) => boolean): Promise<number> {
  const records = readUndo(await readFile(undoPath));
  const isThere = await access(path).then(
    () => true,
    () => false,
  );
  if (records.length === 0 || !isThere) {
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
    const kept = records.filter(isKept);
    for (const { kind, offset, written } of kept) {
      await (kind === "length" ? file.truncate(offset) : file.write(written, 0, written.length, offset));
    }
    await truncate(undoPath, 0);
    return records.length - kept.length;
  } finally {
    await file.close();
  }
}
