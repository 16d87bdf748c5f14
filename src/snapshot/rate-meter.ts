/** Rate meter of a snapshot download: bytes per second, averaged over this many seconds. */
const windowS = 10;

export function createRateMeter(nowMs: () => number) {
  const counts = new Map<number, number>();
  let startMs = nowMs();
  const second = (): number => Math.floor(nowMs() / 1_000);
  return {
    reset(): void {
      startMs = nowMs();
      counts.clear();
    },
    count(bytes: number): void {
      const now = second();
      counts.set(now, (counts.get(now) ?? 0) + bytes);
      for (const at of counts.keys()) {
        if (at < now - windowS) {
          counts.delete(at);
        }
      }
    },
    perS(): number {
      const sinceMs = Math.max(startMs, (second() - windowS) * 1_000);
      const total = [...counts].reduce((sum, [at, bytes]) => (at * 1_000 + 999 >= sinceMs ? sum + bytes : sum), 0);
      return Math.round((total / Math.max(nowMs() - sinceMs, 1)) * 1_000);
    },
  };
}
