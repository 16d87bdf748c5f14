/** Estimates the network time from the clocks of peers. Anyone can run many peers, so each site counts once. */
import type { BookEntry } from "../address-book/peer.js";

export interface NetworkTimeDeps {
  readonly entries: () => readonly BookEntry[];
  /** Returns true if the operator or the genesis names the peer. If any such clock is known, only those count. */
  readonly isNamed: (entry: BookEntry) => boolean;
  /** Returns the site of an endpoint. All peers of one site count as one clock. */
  readonly siteOf: (endpoint: string) => string;
  /** Monotonic clock, in milliseconds. */
  readonly monotonicMs: () => number;
}

/** Time in milliseconds for which a computed offset is cached. */
const cachedForMs = 500;

/**
 * Creates the function that returns the time by the verified peers' clocks, in milliseconds since the epoch. The time
 * is the median, or the later of two middle values; undefined if no clock is known.
 */
export function createNetworkTime({
  entries,
  isNamed,
  siteOf,
  monotonicMs,
}: NetworkTimeDeps): () => number | undefined {
  let cached: { readonly offsetMs: number | undefined; readonly untilMs: number } | undefined;

  function findOffset(): number | undefined {
    const recent = entries().filter(
      (entry) => entry.verifiedMs !== undefined && entry.clockOffsetMs !== undefined,
    ) as readonly (BookEntry & { readonly clockOffsetMs: number })[];
    const named = recent.filter(isNamed);
    if (named.length > 0) {
      return upperMedianOf(named.map(({ clockOffsetMs }) => clockOffsetMs));
    }
    const sites = new Map<string, number[]>();
    for (const { endpoint, clockOffsetMs } of recent) {
      const site = siteOf(endpoint);
      sites.set(site, [...(sites.get(site) ?? []), clockOffsetMs]);
    }
    return upperMedianOf([...sites.values()].map((offsets) => upperMedianOf(offsets)!));
  }

  return () => {
    const now = monotonicMs();
    if (cached === undefined || cached.untilMs <= now) {
      cached = { offsetMs: findOffset(), untilMs: now + cachedForMs };
    }
    return cached.offsetMs === undefined ? undefined : now + cached.offsetMs;
  };
}

function upperMedianOf(values: readonly number[]): number | undefined {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
}
