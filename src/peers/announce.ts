/** Announces a new block to peers at once, so that none has to wait for its next look. */
import type { Dialer } from "./dialer.js";
import type { PeerBook } from "./peer-book.js";

export interface AnnounceParts {
  readonly book: Pick<PeerBook, "believed">;
  readonly dialer: Dialer;
  /** Number of the newest block. */
  readonly head: () => bigint;
}

/** Most peers that it is announced to; the others learn of it from those, or ask. */
const maxAnnouncedTo = 50;

/** Builds the function that announces. A peer to which it is being announced learns of what is newer after that. */
export function createAnnounce({ book, dialer, head }: AnnounceParts): () => void {
  const underWay = new Set<string>();

  async function announceTo(endpoint: string): Promise<void> {
    underWay.add(endpoint);
    let announced = -1n;
    while (announced < head()) {
      // A dialing under way may have said something older.
      await dialer.underWay(endpoint);
      announced = head();
      await dialer.dial(endpoint, 0);
    }
    underWay.delete(endpoint);
  }

  return () => {
    const number = head();
    book
      .believed()
      .filter((entry) => (entry.head?.number ?? 0n) < number && !underWay.has(entry.endpoint))
      .slice(0, maxAnnouncedTo)
      .forEach(({ endpoint }) => void announceTo(endpoint));
  };
}
