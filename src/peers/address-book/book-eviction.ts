/** Limits the size of the address book, and selects entries to evict. */
import type { BookEntries } from "./book-entries.js";
import { type BookEntry, isOperators, isUnverified, isUnverifiedGossip, type PeerOrigin } from "./peer.js";

/** Limit on verified peers and peers from handshakes, except those that the operator named. */
const maxKnown = 1_000;
/** Limit on unverified peers from handshakes. A stranger can name any number of endpoints. */
const maxUnverified = 64;
/** Limit on unverified peers from gossip. */
const maxGossip = 1_000;
/** Time in milliseconds after which a verified peer without a response may be evicted. */
const forgetUnresponsiveAfterMs = 24 * 3_600_000;

/**
 * Creates the function that evicts an entry if a limit is reached. The function returns false if there is no capacity
 * for another peer of this origin.
 */
export function createBookEviction(entries: BookEntries, nowMs: () => number): (origin: PeerOrigin) => boolean {
  /** Evicts the oldest evictable entry of a kind if the limit is reached. Returns false if no entry may be evicted. */
  function evict(limit: number, isKind: (entry: BookEntry) => boolean, mayGo: (entry: BookEntry) => boolean): boolean {
    const kind = entries.all().filter(isKind);
    if (kind.length < limit) {
      return true;
    }
    const oldest = kind.find(mayGo);
    return oldest !== undefined && entries.forget(oldest.endpoint);
  }

  const isUnresponsive = ({ lastSeenMs = 0 }: BookEntry): boolean => nowMs() - lastSeenMs > forgetUnresponsiveAfterMs;

  return (origin) => {
    switch (origin) {
      case "file":
      case "operator":
        return true;
      case "gossip":
        return evict(maxGossip, isUnverifiedGossip, ({ failures, message }) => failures > 0 || message !== undefined);
      case "handshake":
        return evict(maxUnverified, isUnverifiedSelfNamed, anyMayGo) && evict(maxKnown, isKnown, isUnresponsive);
    }
  };
}

const isUnverifiedSelfNamed = (entry: BookEntry): boolean => isUnverified(entry) && !isUnverifiedGossip(entry);
const isKnown = (entry: BookEntry): boolean => !isOperators(entry) && !isUnverifiedGossip(entry);
const anyMayGo = (): boolean => true;
