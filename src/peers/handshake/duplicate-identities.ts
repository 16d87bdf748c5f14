/**
 * Tracks identities that two live processes share: a verified holder, and a process that made a handshake from another
 * endpoint.
 */
import { createLruCache } from "../../base/caches/lru-cache.js";
import type { BookEntry } from "../address-book/peer.js";

/** Second process with the identity of a verified peer. */
interface Double {
  readonly endpoint: string;
  /** Time of the first handshake in an uninterrupted series. */
  readonly firstMs: number;
  /** Time of the last handshake in the series. */
  readonly lastMs: number;
}

export interface DuplicateIdentities {
  /** Records a handshake by a process with another instance id than the holder, from this endpoint. */
  record(identity: string, endpoint: string): void;
  /**
   * Returns the endpoint at which the second process was seen recently. Returns undefined if the holder has moved
   * there, or has not responded since the first handshake and may have moved.
   */
  of(holder: BookEntry | undefined): string | undefined;
}

/** Time in milliseconds for which a record counts. A rejected peer returns within a minute, so this is twice that. */
const holdsForMs = 120_000;
const maxRemembered = 64;

export function createDuplicateIdentities(nowMs: () => number): DuplicateIdentities {
  const duplicates = createLruCache<Double>(maxRemembered);
  const isOfLate = ({ lastMs }: Double): boolean => Math.abs(nowMs() - lastMs) <= holdsForMs;

  return {
    record(identity, endpoint) {
      const known = duplicates.get(identity);
      const isAgain = known?.endpoint === endpoint && isOfLate(known);
      duplicates.set(identity, { endpoint, firstMs: isAgain ? known.firstMs : nowMs(), lastMs: nowMs() });
    },
    of(holder) {
      const double = holder?.identity === undefined ? undefined : duplicates.get(holder.identity);
      if (double === undefined || !isOfLate(double)) {
        return undefined;
      }
      const { endpoint, firstMs } = double;
      const hasMoved = holder?.endpoint === endpoint || holder?.announced === endpoint;
      return !hasMoved && (holder?.lastSeenMs ?? 0) > firstMs ? endpoint : undefined;
    },
  };
}
