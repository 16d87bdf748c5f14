/**
 * Schedules dials. Peers that fail are dialed less and less often. Unverified peers are dialed a few at a time, and are
 * dropped after some attempts.
 */
import type { BookEntries } from "./book-entries.js";
import { type BookEntry, isUnverified } from "./peer.js";

/** Limit on the unverified peers that are dialed in one tick. */
const maxUnverifiedAtOnce = 8;
/** Number of failed calls after which an unverified peer is dropped. */
const maxUnverifiedFailures = 4;
/** Time in milliseconds after which a rejected unverified peer is dropped. */
const dropRejectedAfterMs = 3_600_000;
const maxPauseMs = 60_000;

export interface DialScheduleDeps {
  readonly entries: BookEntries;
  /** Time between two polls of a peer that responds, in milliseconds. */
  readonly intervalMs: number;
  readonly nowMs: () => number;
}

/**
 * Creates the function that returns the endpoints to dial now, and records them as dialed; see {@link PeerBook.due}.
 */
export function createDialSchedule({ entries, intervalMs, nowMs }: DialScheduleDeps): (limit: number) => string[] {
  function mustDrop(entry: BookEntry): boolean {
    const wasRejectedLongAgo = entry.message !== undefined && nowMs() - entry.lastDialedMs > dropRejectedAfterMs;
    return isUnverified(entry) && (entry.failures >= maxUnverifiedFailures || wasRejectedLongAgo);
  }

  return (limit) => {
    const now = nowMs();
    entries
      .all()
      .filter(mustDrop)
      .forEach(({ endpoint }) => entries.remove(endpoint));
    const due = entries
      .all()
      .filter((entry) => isDue(entry, now, intervalMs))
      .sort((a, b) => a.lastDialedMs - b.lastDialedMs);
    const unverified = due.filter(isUnverified).slice(0, maxUnverifiedAtOnce);
    const others = due.filter((entry) => !isUnverified(entry)).slice(0, limit - unverified.length);
    const endpoints = [...others, ...unverified].map(({ endpoint }) => endpoint);
    endpoints.forEach((endpoint) => entries.markDialed(endpoint, now));
    return endpoints;
  };
}

/**
 * Returns true if a peer is due. Times beyond the longest possible pause were set before the clock was set back, so
 * they are ignored.
 */
function isDue({ nextTryMs, lastDialedMs }: BookEntry, now: number, intervalMs: number): boolean {
  const isPauseOver = nextTryMs <= now || nextTryMs > now + maxPauseMs;
  return isPauseOver && (now - lastDialedMs >= intervalMs / 2 || lastDialedMs > now);
}

/** Returns the time of the next attempt after consecutive failures: after one interval, then two, four, up to 1 min. */
export function nextTryAfter(failures: number, intervalMs: number, nowMs: number): number {
  const pauseMs = Math.min(maxPauseMs, intervalMs * 2 ** Math.min(failures - 1, 20));
  // Random jitter of up to half the pause, so that peers that failed together are not all dialed together.
  return nowMs + pauseMs * (0.5 + Math.random() / 2);
}
