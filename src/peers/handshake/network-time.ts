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
export function createNetworkTime({ entries, isNamed, siteOf, monotonicMs }: NetworkTimeDeps) {
  let cached: { readonly offsetMs: number | undefined; readonly untilMs: number } | undefined;

  function findOffset(): number | undefined {
    const verified = entries().filter(({ verifiedMs }) => verifiedMs !== undefined);
    const named = upperMedianOf(verified.filter(isNamed).map(({ clockOffsetMs }) => clockOffsetMs));
    const sites = new Map<string, (number | undefined)[]>();
    for (const { endpoint, clockOffsetMs } of verified) {
      const site = siteOf(endpoint);
      sites.set(site, [...(sites.get(site) ?? []), clockOffsetMs]);
    }
    return named ?? upperMedianOf([...sites.values()].map(upperMedianOf));
  }

  return (): number | undefined => {
    const now = monotonicMs();
    if (cached === undefined || cached.untilMs <= now) {
      cached = { offsetMs: findOffset(), untilMs: now + cachedForMs };
    }
    return cached.offsetMs === undefined ? undefined : now + cached.offsetMs;
  };
}

/** Returns the median of the known values, or the higher of two middle values; undefined if none is known. */
function upperMedianOf(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined).sort((a, b) => a - b);
  return known[Math.floor(known.length / 2)];
}
