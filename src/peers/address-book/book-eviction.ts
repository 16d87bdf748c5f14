/** Limits the size of the address book, and selects entries to evict. */
import type { BookEntries } from "./book-entries.js";
import { type BookEntry, isFromOperator, isUnverified, isUnverifiedGossip, type PeerOrigin } from "./peer.js";

/** Limit on verified peers and peers from handshakes, except those that the operator named. */
const maxVerifiedOrHandshake = 1_000;
/** Limit on unverified peers from handshakes. A stranger can name any number of endpoints. */
const maxUnverified = 64;
/** Limit on unverified peers from gossip. */
const maxGossip = 1_000;
/** Time in milliseconds after which a verified peer without a response may be evicted. */
const unresponsiveAfterMs = 24 * 3_600_000;

/**
 * Creates the function that evicts an entry if a limit is reached. The function returns false if there is no capacity
 * for another peer of this origin.
 */
export function createBookEviction(entries: BookEntries, nowMs: () => number): (origin: PeerOrigin) => boolean {
  /** Evicts the oldest evictable entry of a group if the limit is reached. Returns false if no entry may be evicted. */
  function evict(
    limit: number,
    isInGroup: (entry: BookEntry) => boolean,
    isEvictable: (entry: BookEntry) => boolean,
  ): boolean {
    const group = entries.all().filter(isInGroup);
    if (group.length < limit) {
      return true;
    }
    const oldest = group.find(isEvictable);
    return oldest !== undefined && entries.remove(oldest.endpoint);
  }

  const isUnresponsive = ({ lastSeenMs = 0 }: BookEntry): boolean => nowMs() - lastSeenMs > unresponsiveAfterMs;

  return (origin) => {
    switch (origin) {
      case "file":
      case "operator":
        return true;
      case "gossip":
        return evict(maxGossip, isUnverifiedGossip, ({ failures, message }) => failures > 0 || message !== undefined);
      case "handshake":
        return (
          evict(maxUnverified, isUnverifiedHandshake, always) &&
          evict(maxVerifiedOrHandshake, isVerifiedOrHandshake, isUnresponsive)
        );
    }
  };
}

const isUnverifiedHandshake = (entry: BookEntry): boolean => isUnverified(entry) && !isUnverifiedGossip(entry);
const isVerifiedOrHandshake = (entry: BookEntry): boolean => !isFromOperator(entry) && !isUnverifiedGossip(entry);
const always = (): boolean => true;
