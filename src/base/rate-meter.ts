/**
 * Creates a meter that counts in slots of one second.
 *
 * @param windowS seconds over which the rate is averaged.
 */
export function createRateMeter(nowMs: () => number, windowS: number) {
  const counts = new Map<number, number>();
  let startMs = nowMs();
  const nowS = (): number => Math.floor(nowMs() / 1_000);
  return {
    reset(): void {
      startMs = nowMs();
      counts.clear();
    },
    count(amount: number): void {
      const currentS = nowS();
      counts.set(currentS, (counts.get(currentS) ?? 0) + amount);
      for (const slotS of counts.keys()) {
        if (slotS < currentS - windowS) {
          counts.delete(slotS);
        }
      }
    },
    /** Returns the amount per second. */
    perS(): number {
      const sinceMs = Math.max(startMs, (nowS() - windowS) * 1_000);
      const total = [...counts].reduce(
        (sum, [slotS, amount]) => (slotS * 1_000 + 999 >= sinceMs ? sum + amount : sum),
        0,
      );
      return (total / Math.max(nowMs() - sinceMs, 1)) * 1_000;
    },
  };
}
