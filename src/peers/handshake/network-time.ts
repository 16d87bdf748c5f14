/** What the clocks of others show. Everybody can be a peer, so not everybody's clock counts as much. */
import type { BookEntry } from "../address-book/peer.js";

export interface PeerClocksDeps {
  readonly entries: () => readonly BookEntry[];
  /** The operator or the genesis names it: where any of these is known, only they count. */
  readonly isNamed: (entry: BookEntry) => boolean;
  /** Where it was found; all that are found at one place have one voice. */
  readonly siteOf: (endpoint: string) => string;
  /** A clock that nobody sets. */
  readonly monotonicMs: () => number;
}

/** What was worked out holds for so long. */
const holdsForMs = 500;

/**
 * Builds the function that gives the time by the verified peers' clocks, in milliseconds since the epoch: the middle one,
 * and of two middle ones the later. Undefined while none is known.
 */
export function createNetworkTime({ entries, isNamed, siteOf, monotonicMs }: PeerClocksDeps): () => number | undefined {
  let known: { readonly offsetMs: number | undefined; readonly untilMs: number } | undefined;

  function findOffset(): number | undefined {
    const heard = entries().filter(
      (entry) => entry.verifiedMs !== undefined && entry.clockOffsetMs !== undefined,
    ) as readonly (BookEntry & { readonly clockOffsetMs: number })[];
    const named = heard.filter(isNamed);
    if (named.length > 0) {
      return middleOf(named.map(({ clockOffsetMs }) => clockOffsetMs));
    }
    const sites = new Map<string, number[]>();
    for (const { endpoint, clockOffsetMs } of heard) {
      const site = siteOf(endpoint);
      sites.set(site, [...(sites.get(site) ?? []), clockOffsetMs]);
    }
    return middleOf([...sites.values()].map((offsets) => middleOf(offsets)!));
  }

  return () => {
    const now = monotonicMs();
    if (known === undefined || known.untilMs <= now) {
      known = { offsetMs: findOffset(), untilMs: now + holdsForMs };
    }
    return known.offsetMs === undefined ? undefined : now + known.offsetMs;
  };
}

function middleOf(values: readonly number[]): number | undefined {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
}
