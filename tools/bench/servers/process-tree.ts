/** Reads the resource usage of processes from /proc, so also while they are blocked. Linux only. */
import { readdirSync, readFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import type { Usage } from "./report-usage.js";

/** Returns the reason if the usage cannot be read here. */
export const whyNoTree = process.platform === "linux" ? undefined : "what workers use is told by Linux alone";

/** Usage of all processes together. */
export async function usageOfTree(pid: number): Promise<Usage> {
  const [own, children] = await Promise.all([usageOf(pid), childrenOf(pid)]);
  const theirs = await Promise.all(children.map(usageOfTree));
  return theirs.reduce((a, b) => ({ cpuUs: a.cpuUs + b.cpuUs, rssBytes: a.rssBytes + b.rssBytes }), own);
}

const pageBytes = 4096;

async function usageOf(pid: number): Promise<Usage> {
  const threads = await threadsOf(pid);
  // Thread times are in nanoseconds; the times of a process are only in hundredths of a second.
  const cpuNs = await Promise.all(
    threads.map(async (thread) => Number((await read(`/proc/${pid}/task/${thread}/schedstat`)).split(" ")[0])),
  );
  const pages = Number((await read(`/proc/${pid}/statm`)).split(" ")[1]);
  return { cpuUs: cpuNs.reduce((sum, ns) => sum + ns, 0) / 1_000, rssBytes: pages * pageBytes };
}

async function childrenOf(pid: number): Promise<number[]> {
  const threads = await threadsOf(pid);
  const lists = await Promise.all(threads.map((thread) => read(`/proc/${pid}/task/${thread}/children`)));
  return lists.flatMap((list) =>
    list
      .split(" ")
      .filter((word) => word.trim() !== "")
      .map(Number),
  );
}

async function threadsOf(pid: number): Promise<string[]> {
  return await readdir(`/proc/${pid}/task`).catch(() => []);
}

/** Returns nothing if the thread has ended meanwhile. */
async function read(path: string): Promise<string> {
  return await readFile(path, "utf8").catch(() => "0");
}

/** Highest sampled values; undefined if they cannot be read. */
export interface MemoryPeaks {
  /** Resident memory of all processes of the tree, in bytes. Counts shared code once for each process. */
  readonly rssBytes: number | undefined;
  /** Of this, memory that belongs to the processes alone. */
  readonly privateBytes: number | undefined;
  /** Memory that the kernel used for TCP, for all processes of the machine, in bytes. */
  readonly socketBytes: number | undefined;
}

const everyMs = 100;

/** Samples the memory of a process and its descendants until it is stopped. */
export function watchMemory(pid: number): { stop(): MemoryPeaks } {
  const rss = createPeak(() => sumOfTree(pid, /^VmRSS:\s+(\d+) kB/m));
  const own = createPeak(() => sumOfTree(pid, /^RssAnon:\s+(\d+) kB/m));
  const sockets = createPeak(() => numberIn("/proc/net/sockstat", /^TCP:.* mem (\d+)/m, pageBytes));
  const timer = setInterval(() => {
    rss.sample();
    own.sample();
    sockets.sample();
  }, everyMs);
  return {
    stop() {
      clearInterval(timer);
      return { rssBytes: rss.bytes(), privateBytes: own.bytes(), socketBytes: sockets.bytes() };
    },
  };
}

function createPeak(read: () => number | undefined) {
  let peak: number | undefined;
  return {
    sample(): void {
      const bytes = read();
      peak = bytes === undefined ? peak : Math.max(peak ?? 0, bytes);
    },
    bytes: () => peak,
  };
}

function sumOfTree(pid: number, pattern: RegExp): number | undefined {
  const own = numberIn(`/proc/${pid}/status`, pattern, 1_024);
  return own === undefined
    ? undefined
    : childrenNow(pid).reduce((sum, child) => sum + (sumOfTree(child, pattern) ?? 0), own);
}

/** Returns the children of a process; none if it has ended. */
function childrenNow(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").split(" ").filter(Boolean).map(Number),
    );
  } catch {
    return [];
  }
}

/** Returns a number in a file; undefined if the process has ended. */
function numberIn(file: string, pattern: RegExp, unitBytes: number): number | undefined {
  try {
    const found = pattern.exec(readFileSync(file, "utf8"))?.[1];
    return found === undefined ? undefined : Number(found) * unitBytes;
  } catch {
    return undefined;
  }
}
