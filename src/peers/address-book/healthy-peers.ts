/** Verified peers that are online and not penalized. */
import type { BookEntries } from "./book-entries.js";
import { maxPenaltyMs } from "./book-records.js";
import type { BookEntry } from "./peer.js";

export interface HealthyPeers {
  list(): BookEntry[];
  /** Returns the highest block number that any of these peers reported; undefined if none has reported. */
  highestBlock(): bigint | undefined;
}

export function createHealthyPeers(entries: BookEntries, nowMs: () => number): HealthyPeers {
  /** Cached result. Valid until an entry changes or the penalty of a peer ends. */
  let highest:
    | { readonly block: bigint | undefined; readonly revision: number; readonly validUntilMs: number }
    | undefined;

  const list = (): BookEntry[] => {
    const now = nowMs();
    return entries.all().filter((entry) => entry.online && entry.handshaken && !isPenalized(entry, now));
  };

  return {
    list,
    highestBlock() {
      const now = nowMs();
      if (highest === undefined || highest.revision !== entries.revision() || highest.validUntilMs <= now) {
        let block: bigint | undefined;
        for (const { head } of list()) {
          block = head === undefined || (block !== undefined && block >= head.number) ? block : head.number;
        }
        let validUntilMs = Infinity;
        for (const { penalizedUntilMs } of entries.all()) {
          validUntilMs = penalizedUntilMs > now ? Math.min(validUntilMs, penalizedUntilMs) : validUntilMs;
        }
        highest = { block, revision: entries.revision(), validUntilMs };
      }
      return highest.block;
    },
  };
}

/**
 * Returns true if a peer is penalized. A time beyond the longest penalty was set before the clock was set back, so it
 * is ignored.
 */
function isPenalized({ penalizedUntilMs }: BookEntry, now: number): boolean {
  return penalizedUntilMs > now && penalizedUntilMs <= now + maxPenaltyMs;
}
