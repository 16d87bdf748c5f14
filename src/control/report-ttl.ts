/** Time to live of the reports of other processes. A subsystem fails if its process does not report again in time. */

export interface ReportTtl {
  /**
   * Starts or renews the lease of a subsystem.
   *
   * @returns Expiry time in milliseconds since the epoch.
   */
  renew(name: string, seconds: number): number;
  stop(): void;
}

/**
 * Creates the timers of the leases.
 *
 * @param onExpired Called once for each lease that expires.
 */
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
