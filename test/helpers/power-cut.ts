/** A disk that loses its power: of each file it has what was synced, and nothing that was written after that. */
import { spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { cp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Teardown, temporaryDirectory } from "./teardown.js";
import { whyNot } from "./when.js";

/** A library that keeps what was synced. */
export interface PowerCut {
  /** Why there is none here; undefined where there is. */
  readonly missing: string | undefined;
  /**
   * Prepares a directory whose files are on the disk now, for one process: it gets these variables. What the disk has
   * when the process is killed is in `kept`.
   */
  prepare(t: Teardown, dir: string): Promise<{ readonly env: Readonly<Record<string, string>>; readonly kept: string }>;
}

/** Compiles the library. */
export function preparePowerCut(): PowerCut {
  const library = join(mkdtempSync(join(tmpdir(), "gatehouse-power-")), "power-cut.so");
  const missing = process.platform === "linux" ? compile(library) : "only Linux loads libraries before a process";
  return {
    missing,
    async prepare(t, dir) {
      const kept = join(await temporaryDirectory(t), "kept");
      // A socket is none of a disk's.
      await cp(dir, kept, { recursive: true, filter: (path) => !path.endsWith(".sock") });
      return { env: { LD_PRELOAD: library, POWER_CUT_FROM: dir, POWER_CUT_TO: kept }, kept };
    },
  };
}

function compile(library: string): string | undefined {
  const source = resolve("test/helpers/power-cut.c");
  const why = whyNot("cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl");
  return (
    why ??
    (spawnSync("sh", ["-c", "true"], { env: { LD_PRELOAD: library } }).status === 0 ? undefined : "it does not load")
  );
}
