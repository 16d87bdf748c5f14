/** Identities that two live processes have: one that is verified, and one that shook hands from elsewhere. */
import { createRecentCache } from "../base/recent-cache.js";
import type { BookEntry } from "./peer.js";

/** A process with an identity that another one holds. */
interface Double {
  readonly endpoint: string;
  readonly seenMs: number;
}

export interface Doubles {
  /** A process with another instance than the holder's shook hands, and named this endpoint. */
  saw(identity: string, endpoint: string): void;
  /** Where it was seen of late; undefined where the holder has not answered since then: it may have moved there. */
  of(holder: BookEntry | undefined): string | undefined;
}

/** A peer that is refused comes again within a minute; twice that. */
const holdsForMs = 120_000;
const maxRemembered = 64;

export function createDoubles(nowMs: () => number): Doubles {
  const doubles = createRecentCache<Double>(maxRemembered);
  return {
    saw: (identity, endpoint) => void doubles.set(identity, { endpoint, seenMs: nowMs() }),
    of(holder) {
      const double = holder?.identity === undefined ? undefined : doubles.get(holder.identity);
      const isThere = double !== undefined && Math.abs(nowMs() - double.seenMs) <= holdsForMs;
      return isThere && (holder?.lastSeenMs ?? 0) > double.seenMs ? double.endpoint : undefined;
    },
  };
}
