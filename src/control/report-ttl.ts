/** Reports of other processes that hold for a while: who does not report again in time has failed. */

export interface ReportTtl {
  /**
   * Begins or renews a lease.
   *
   * @returns milliseconds since the epoch when it runs out.
   */
  renew(name: string, seconds: number): number;
  stop(): void;
}

/** @param onExpired hears of a lease that ran out, once. */
export function createReportTtl(nowMs: () => number, onExpired: (name: string, seconds: number) => void): ReportTtl {
  const timers = new Map<string, NodeJS.Timeout>();
  return {
    renew(name, seconds) {
      clearTimeout(timers.get(name));
      timers.set(
        name,
        setTimeout(() => onExpired(name, seconds), seconds * 1000),
      );
      return nowMs() + seconds * 1000;
    },
    stop() {
      timers.forEach((timer) => clearTimeout(timer));
    },
  };
}
