/** Tells peers of a new block at once, so that none has to wait for its next look. */
import type { Acquaint } from "./acquaint.js";
import type { PeerBook } from "./peer-book.js";

/** What it needs. */
export interface AnnounceParts {
  readonly book: Pick<PeerBook, "believed">;
  readonly acquaint: Pick<Acquaint, "ask" | "underWay">;
  /** Number of the newest block. */
  readonly head: () => bigint;
}

/** Most peers that are told; the others hear of it from those, or ask. */
const maxTold = 50;

/** Builds the function that tells. Peers that are being told hear of everything that is new when that is done. */
export function createAnnounce({ book, acquaint, head }: AnnounceParts): () => void {
  const telling = new Set<string>();

  async function tell(endpoint: string): Promise<void> {
    telling.add(endpoint);
    let told = -1n;
    while (told < head()) {
      // One under way may have said something older.
      await acquaint.underWay(endpoint);
      told = head();
      await acquaint.ask(endpoint, 0);
    }
    telling.delete(endpoint);
  }

  return () => {
    const number = head();
    book
      .believed()
      .filter((entry) => (entry.head?.number ?? 0n) < number && !telling.has(entry.endpoint))
      .slice(0, maxTold)
      .forEach(({ endpoint }) => void tell(endpoint));
  };
}
