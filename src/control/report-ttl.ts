/** Time to live of the reports of other processes. A subsystem fails if its process does not report again in time. */

export interface ReportTtl {
  /**
   * Starts the time to live of a report on a subsystem, in place of that of its previous report.
   *
   * @returns Expiry time in milliseconds since the epoch.
   */
  renew(name: string, seconds: number): number;
  stop(): void;
}

/**
 * Creates the expiry timers of the reports.
 *
 * @param onExpired Called once for each report that expires before the next one, with its time to live.
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
