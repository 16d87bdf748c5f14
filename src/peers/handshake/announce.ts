/** Announces a new block, and a new word of an authority, to peers at once, so that none has to wait for its next look. */
import type { Dialer } from "./dialer.js";
import type { PeerBook } from "../address-book/peer-book.js";

/** How far a node is: its newest block, and when an authority said last that there is no newer one. */
export interface Position {
  readonly number: bigint;
  /** 0 where none has said so. */
  readonly statedMs: number;
}

export interface AnnounceDeps {
  readonly book: Pick<PeerBook, "believed">;
  readonly dialer: Dialer;
  readonly position: () => Position;
}

/** Most peers that it is announced to; the others learn of it from those, or ask. */
const maxAnnouncedTo = 50;

/** Builds the function that announces. A peer to which it is being announced learns of what is newer after that. */
export function createAnnounce({ book, dialer, position }: AnnounceDeps): () => void {
  const underWay = new Set<string>();

  async function announceTo(endpoint: string): Promise<void> {
    underWay.add(endpoint);
    let announced: Position = { number: -1n, statedMs: 0 };
    while (isBehind(announced, position())) {
      // A dialing under way may have said something older.
      await dialer.underWay(endpoint);
      announced = position();
      await dialer.dial(endpoint, 0);
    }
    underWay.delete(endpoint);
  }

  return () => {
    const here = position();
    book
      .believed()
      .filter(
        ({ endpoint, head, statedMs }) =>
          !underWay.has(endpoint) && isBehind({ number: head?.number ?? 0n, statedMs }, here),
      )
      .slice(0, maxAnnouncedTo)
      .forEach(({ endpoint }) => void announceTo(endpoint));
  };
}

function isBehind(one: Position, other: Position): boolean {
  return one.number < other.number || (one.number === other.number && one.statedMs < other.statedMs);
}
