/**
 * Tracks identities that two running processes share: a verified peer (the holder), and a second process that made a handshake
 * from another endpoint.
 */
import { createLruCache } from "../../base/caches/lru-cache.js";
import type { BookEntry } from "../address-book/peer.js";

/** Second process with the identity of a verified peer. */
interface Duplicate {
  readonly endpoint: string;
  /** Time of the first handshake in an uninterrupted series. */
  readonly firstMs: number;
  /** Time of the last handshake in the series. */
  readonly lastMs: number;
}

export interface DuplicateIdentities {
  /** Records a handshake from this endpoint, by a process whose instance id differs from the holder's. */
  record(identity: string, endpoint: string): void;
  /**
   * Returns the endpoint at which the second process was seen recently. Returns undefined if the holder has moved
   * there, or has not responded since the first handshake and may have moved.
   */
  endpointOf(holder: BookEntry | undefined): string | undefined;
}

/** Time in milliseconds for which a record counts. A rejected peer returns within a minute, so this is twice that. */
const validForMs = 120_000;
const maxTracked = 64;

export function createDuplicateIdentities(nowMs: () => number): DuplicateIdentities {
  const duplicates = createLruCache<Duplicate>(maxTracked);
  const isRecent = ({ lastMs }: Duplicate): boolean => Math.abs(nowMs() - lastMs) <= validForMs;

  return {
    record(identity, endpoint) {
      const previous = duplicates.get(identity);
      const continuesSeries = previous?.endpoint === endpoint && isRecent(previous);
      duplicates.set(identity, { endpoint, firstMs: continuesSeries ? previous.firstMs : nowMs(), lastMs: nowMs() });
    },
    endpointOf(holder) {
      const duplicate = holder?.identity === undefined ? undefined : duplicates.get(holder.identity);
      if (duplicate === undefined || !isRecent(duplicate)) {
        return undefined;
      }
      const { endpoint, firstMs } = duplicate;
      const hasMoved = holder?.endpoint === endpoint || holder?.announced === endpoint;
      return !hasMoved && (holder?.lastSeenMs ?? 0) > firstMs ? endpoint : undefined;
    },
  };
}
