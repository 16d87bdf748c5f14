/** Measures of processes: memory, ticks of the event loop, and loaded modules. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type Teardown, temporaryDirectory } from "../nodes/teardown.js";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cleanEnvironment, collect, runCliProcess } from "../nodes/run-cli.js";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** Returns the heap size of this process after a garbage collection, in bytes. */
export function heapBytes(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().heapUsed;
}

/** Counts until the test ends. Returns a function that returns the number of the current tick. */
export function countTurns(t: Teardown): () => number {
  let turn = 0;
  let next = setImmediate(count);
  function count(): void {
    turn++;
    next = setImmediate(count);
  }
  t.teardown(() => clearImmediate(next));
  return () => turn;
}

/** Adds up the work in each tick. */
export function createTally(turn: () => number) {
  const byTurn = new Map<number, number>();
  return {
    add(units: number): void {
      byTurn.set(turn(), (byTurn.get(turn()) ?? 0) + units);
    },
    /** The maximum work in one tick. */
    most: () => Math.max(...byTurn.values()),
    all: () => [...byTurn.values()].reduce((sum, units) => sum + units, 0),
  };
}

const tell = `process.on("exit", () => process.stderr.write("\\npeak " + process.resourceUsage().maxRSS))`;

/** Runs Node.js, without coverage. Returns the peak memory in MB, and the exit code. */
export async function peakMemoryOf(
  args: readonly string[],
): Promise<{ readonly mb: number; readonly code: number | null }> {
  const env = cleanEnvironment({ NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(tell)}` });
  delete env["NODE_V8_COVERAGE"];
  const child = spawn(process.execPath, args, { env });
  const { stderr } = collect(child);
  const [code] = (await once(child, "close")) as [number | null];
  return { mb: Number(/\npeak (\d+)$/.exec(stderr())![1]) / 1000, code };
}

/**
 * Runs a command in a separate process. Returns the packages that it loads, and the modules of `src/` and `gen/`.
 */
export async function loadedBy(t: Teardown, args: readonly string[]): Promise<{ packages: string[]; own: string[] }> {
  // Node.js writes its coverage there, which lists all loaded scripts.
  const dir = await temporaryDirectory(t);
  await runCliProcess(args, { env: { NODE_V8_COVERAGE: dir } });
  const [file] = await readdir(dir);
  const { result } = JSON.parse(await readFile(join(dir, file!), "utf8")) as { result: { url: string }[] };
  const paths = (pattern: RegExp): string[] => [
    ...new Set(result.flatMap(({ url }) => pattern.exec(url)?.[1] ?? []).sort()),
  ];
  return {
    packages: paths(/\/node_modules\/((?:@[^/]+\/)?[^/]+)\//),
    own: paths(/\/dist\/((?:src|gen)\/.*)\.js$/),
  };
}
