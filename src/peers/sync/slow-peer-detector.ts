/** Measures the rate of blocks, and detects slow peers. */

/** Waiting time in milliseconds within which a peer must send {@link minBlocks} blocks. Otherwise it is slow. */
const windowMs = 10_000;
const minBlocks = 10;

/** Creates a meter that counts blocks, and returns the blocks per second over the last 5 s. */
export function createRateMeter(nowMs: () => number) {
  const windowS = 5;
  const counts = new Map<number, number>();
  let startMs = nowMs();
  const second = (): number => Math.floor(nowMs() / 1000);
  return {
    reset() {
      startMs = nowMs();
      counts.clear();
    },
    count() {
      const now = second();
      counts.set(now, (counts.get(now) ?? 0) + 1);
      counts.delete(now - windowS - 1);
    },
    perS() {
      const sinceMs = Math.max(startMs, (second() - windowS) * 1000);
      let total = 0;
      for (const [at, count] of counts) {
        total += at * 1000 + 999 >= sinceMs ? count : 0;
      }
      return Math.round((total / Math.max(nowMs() - sinceMs, 1)) * 10_000) / 10;
    },
  };
}

/** Creates a detector for one peer. Only the time spent waiting for blocks counts, not the time to apply them. */
export function createSlowPeerDetector(nowMs: () => number) {
  let waitedMs = 0;
  let count = 0;
  return {
    async waitFor<T>(block: Promise<T>): Promise<T> {
      const startMs = nowMs();
      const result = await block;
      waitedMs += nowMs() - startMs;
      return result;
    },
    isTooSlow(): boolean {
      count++;
      if (waitedMs < windowMs) {
        return false;
      }
      const isSlow = count < minBlocks;
      waitedMs = 0;
      count = 0;
      return isSlow;
    },
  };
}
