/** Judgment of a lease that another node holds, by what the database shows and by this node's own clock. */
import { leaseMs, renewEveryMs, type StoredLease } from "./writer-lease-store.js";

/**
 * Creates an observer of one lease. The lease is free once the database has shown it unchanged for a full term, in which
 * its holder could have renewed it. So neither an outage nor a clock of the database ends the lease of a living holder.
 *
 * @param nowMs returns the time of a monotonic clock in milliseconds.
 */
export function createLeaseObserver(nowMs: () => number = () => performance.now()) {
  let seen: Pick<StoredLease, "epoch" | "untilMs"> | undefined;
  let [sinceMs, answeredMs] = [0, 0];
  return {
    /**
     * Records the lease that the database has just returned. Returns the milliseconds for which the holder can still
     * renew it; 0 if it is free.
     */
    observe({ epoch, untilMs }: Pick<StoredLease, "epoch" | "untilMs">): number {
      const ms = nowMs();
      const isUnchanged = seen?.epoch === epoch && seen.untilMs === untilMs;
      // A longer pause between two responses is an outage, or this process was suspended.
      if (!isUnchanged || ms - answeredMs > renewEveryMs) {
        seen = { epoch, untilMs };
        sinceMs = ms;
      }
      answeredMs = ms;
      return Math.max(0, sinceMs + leaseMs - ms);
    },
    /** Starts the term again, because the database did not respond. */
    restart(): void {
      seen = undefined;
    },
  };
}

export type LeaseObserver = ReturnType<typeof createLeaseObserver>;
