/** Rate meter of a snapshot download. */

/** Number of seconds over which the rate is averaged. */
const windowS = 10;

/** Creates a meter that counts bytes in slots of one second, and returns their rate in bytes per second. */
export function createRateMeter(nowMs: () => number) {
  const counts = new Map<number, number>();
  let startMs = nowMs();
  const nowS = (): number => Math.floor(nowMs() / 1_000);
  return {
    reset(): void {
      startMs = nowMs();
      counts.clear();
    },
    count(bytes: number): void {
      const currentS = nowS();
      counts.set(currentS, (counts.get(currentS) ?? 0) + bytes);
      for (const slotS of counts.keys()) {
        if (slotS < currentS - windowS) {
          counts.delete(slotS);
        }
      }
    },
    perS(): number {
      const sinceMs = Math.max(startMs, (nowS() - windowS) * 1_000);
      const total = [...counts].reduce(
        (sum, [slotS, bytes]) => (slotS * 1_000 + 999 >= sinceMs ? sum + bytes : sum),
        0,
      );
      return Math.round((total / Math.max(nowMs() - sinceMs, 1)) * 1_000);
    },
  };
}
