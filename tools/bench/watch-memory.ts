/**
 * Samples the memory of a process from outside, so that sampling continues while the process is blocked. Linux only.
 */
import { readFileSync } from "node:fs";

/** Highest sampled values; undefined if they cannot be read. */
export interface MemoryPeaks {
  /** Resident memory of the process, in bytes. */
  readonly rssBytes: number | undefined;
  /** Memory that the kernel used for TCP, for all processes, in bytes. */
  readonly socketBytes: number | undefined;
}

const everyMs = 50;
const pageBytes = 4_096;

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
      const found = pattern.exec(readText(file))?.[1];
      if (found !== undefined) {
        most = Math.max(most ?? 0, Number(found) * unitBytes);
      }
    },
    most: () => most,
  };
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
