/** When peers are dialed: those that fail less and less often, and unverified ones a few at a time and not for ever. */
import type { BookEntries } from "./book-entries.js";
import { type BookEntry, isUnverified } from "./peer.js";

/** Most unverified peers that are dialed in one tick. */
const maxUnverifiedAtOnce = 8;
/** How often an unverified peer is tried. */
const unverifiedTries = 4;
/** An unverified peer that was refused is forgotten after this. */
const forgetUnverifiedAfterMs = 3_600_000;
const longestPauseMs = 60_000;

export interface DialScheduleDeps {
  readonly entries: BookEntries;
  /** Time between two looks at a peer that answers. */
  readonly intervalMs: number;
  readonly nowMs: () => number;
}

/** Builds the function that gives the endpoints to dial now, and takes it that they are; see {@link PeerBook.due}. */
export function createDialSchedule({ entries, intervalMs, nowMs }: DialScheduleDeps): (limit: number) => string[] {
  function isGivenUp(entry: BookEntry): boolean {
    const wasRefusedLongAgo = entry.message !== undefined && nowMs() - entry.lastDialedMs > forgetUnverifiedAfterMs;
    return isUnverified(entry) && (entry.failures >= unverifiedTries || wasRefusedLongAgo);
  }

  return (limit) => {
    const now = nowMs();
    entries
      .all()
      .filter(isGivenUp)
      .forEach(({ endpoint }) => entries.forget(endpoint));
    const due = entries
      .all()
      .filter((entry) => isDue(entry, now, intervalMs))
      .sort((a, b) => a.lastDialedMs - b.lastDialedMs);
    const unverified = due.filter(isUnverified).slice(0, maxUnverifiedAtOnce);
    const known = due.filter((entry) => !isUnverified(entry)).slice(0, limit - unverified.length);
    const endpoints = [...known, ...unverified].map(({ endpoint }) => endpoint);
    endpoints.forEach((endpoint) => entries.markDialed(endpoint, now));
    return endpoints;
  };
}

/** Times that lie further ahead than any is set were set before the clock went back. */
function isDue({ nextTryMs, lastDialedMs }: BookEntry, now: number, intervalMs: number): boolean {
  const isTurn = nextTryMs <= now || nextTryMs > now + longestPauseMs;
  return isTurn && (now - lastDialedMs >= intervalMs / 2 || lastDialedMs > now);
}

/** When a peer is tried again that failed so many times in a row: after one interval, then two, four, up to a minute. */
export function nextTryAfter(failures: number, intervalMs: number, nowMs: number): number {
  const pauseMs = Math.min(longestPauseMs, intervalMs * 2 ** Math.min(failures - 1, 20));
  // Not all at the same moment, where many went away together.
  return nowMs + pauseMs * (0.5 + Math.random() / 2);
}
