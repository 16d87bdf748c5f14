/** Reads the resource usage of processes from /proc, so also while they are blocked. Linux only. */
import { readFileSync } from "node:fs";
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
  /** Resident memory of the process, in bytes. */
  readonly rssBytes: number | undefined;
  /** Memory that the kernel used for TCP, for all processes, in bytes. */
  readonly socketBytes: number | undefined;
}

const everyMs = 50;

/** Samples until it is stopped. */
export function watchMemory(pid: number): { stop(): MemoryPeaks } {
  const rss = peakOf(`/proc/${pid}/status`, /^VmRSS:\s+(\d+) kB/m, 1_024);
  const sockets = peakOf("/proc/net/sockstat", /^TCP:.* mem (\d+)/m, pageBytes);
  const timer = setInterval(() => {
    rss.look();
    sockets.look();
  }, everyMs);
  return {
    stop() {
      clearInterval(timer);
      return { rssBytes: rss.most(), socketBytes: sockets.most() };
    },
  };
}

function peakOf(file: string, pattern: RegExp, unitBytes: number) {
  let most: number | undefined;
  return {
    look(): void {
      try {
        const found = pattern.exec(readFileSync(file, "utf8"))?.[1];
        most = found === undefined ? most : Math.max(most ?? 0, Number(found) * unitBytes);
      } catch {
        // The process has ended.
      }
    },
    most: () => most,
  };
}
