/** How fast blocks come. */

/** A peer that is waited for so long for fewer blocks than {@link leastBlocks} is slow. */
const paceWindowMs = 10_000;
const leastBlocks = 10;

/** Counts blocks, and gives how many came a second over the last seconds. */
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

/** Whether one peer's blocks come too slowly; the time in which they are applied does not count. */
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
      if (waitedMs < paceWindowMs) {
        return false;
      }
      const isSlow = count < leastBlocks;
      waitedMs = 0;
      count = 0;
      return isSlow;
    },
  };
}
