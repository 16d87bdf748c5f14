/** How many peers the address book holds, and who makes room for whom. */
import type { BookEntries } from "./book-entries.js";
import { type BookEntry, isOperators, isUnverified, isUnverifiedGossip, type PeerOrigin } from "./peer.js";

/** Most peers that named themselves or were verified. */
const maxKnown = 1_000;
/** Most of those that are not verified: anybody can name as many as he likes. */
const maxUnverified = 64;
/** Most unverified peers that came by gossip. */
const maxGossip = 1_000;
/** A verified peer that was not seen for this long makes room for another one. */
const forgetSilentAfterMs = 24 * 3_600_000;

/** Builds the function that makes room for one more peer; it gives false when there is none. */
export function createBookEviction(entries: BookEntries, nowMs: () => number): (origin: PeerOrigin) => boolean {
  /** Makes room among entries of a kind; false when all of them are to be kept. */
  function makeRoom(
    most: number,
    isKind: (entry: BookEntry) => boolean,
    mayGo: (entry: BookEntry) => boolean,
  ): boolean {
    const kind = entries.all().filter(isKind);
    if (kind.length < most) {
      return true;
    }
    const oldest = kind.find(mayGo);
    return oldest !== undefined && entries.forget(oldest.endpoint);
  }

  const isSilent = ({ lastSeenMs = 0 }: BookEntry): boolean => nowMs() - lastSeenMs > forgetSilentAfterMs;

  return (origin) => {
    switch (origin) {
      case "file":
      case "operator":
        return true;
      case "gossip":
        return makeRoom(
          maxGossip,
          isUnverifiedGossip,
          ({ failures, message }) => failures > 0 || message !== undefined,
        );
      case "handshake":
        return makeRoom(maxUnverified, isUnverifiedSelfNamed, anyMayGo) && makeRoom(maxKnown, isKnown, isSilent);
    }
  };
}

const isUnverifiedSelfNamed = (entry: BookEntry): boolean => isUnverified(entry) && !isUnverifiedGossip(entry);
const isKnown = (entry: BookEntry): boolean => !isOperators(entry) && !isUnverifiedGossip(entry);
const anyMayGo = (): boolean => true;
