/** The verified peers that answer and are believed, and how far they are. */
import type { BookEntries } from "./book-entries.js";
import { longestDistrustMs } from "./book-records.js";
import type { BookEntry } from "./peer.js";

export interface HealthyPeers {
  list(): BookEntry[];
  /** Number of the newest block that any of them has; undefined while none has said. */
  highestBlock(): bigint | undefined;
}

export function createHealthyPeers(entries: BookEntries, nowMs: () => number): HealthyPeers {
  /** Holds while no entry changes, and no peer is believed again because its time has passed. */
  let highest: { readonly block: bigint | undefined; readonly revision: number; readonly untilMs: number } | undefined;

  const list = (): BookEntry[] => {
    const now = nowMs();
    return entries.all().filter((entry) => entry.online && entry.handshaken && !isDistrusted(entry, now));
  };

  return {
    list,
    highestBlock() {
      const now = nowMs();
      if (highest === undefined || highest.revision !== entries.revision() || highest.untilMs <= now) {
        let block: bigint | undefined;
        for (const { head } of list()) {
          block = head === undefined || (block !== undefined && block >= head.number) ? block : head.number;
        }
        let untilMs = Infinity;
        for (const { distrustedUntilMs } of entries.all()) {
          untilMs = distrustedUntilMs > now ? Math.min(untilMs, distrustedUntilMs) : untilMs;
        }
        highest = { block, revision: entries.revision(), untilMs };
      }
      return highest.block;
    },
  };
}

/** A time further ahead than any is set was set before the clock went back. */
function isDistrusted({ distrustedUntilMs }: BookEntry, now: number): boolean {
  return distrustedUntilMs > now && distrustedUntilMs <= now + longestDistrustMs;
}
