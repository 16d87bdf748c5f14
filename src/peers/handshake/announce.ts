/** Announces a new block or a new signed head to peers at once, so that they need not wait for their next poll. */
import type { Dialer } from "./dialer.js";
import type { PeerBook } from "../address-book/peer-book.js";

/** Position of a node: its latest block, and the time of the latest signed head for that block. */
export interface Position {
  readonly number: bigint;
  /** Time of the signed head; 0 if there is none. */
  readonly statedMs: number;
}

export interface AnnounceDeps {
  readonly book: Pick<PeerBook, "healthy">;
  readonly dialer: Dialer;
  readonly position: () => Position;
}

/** Limit on the peers that receive an announcement. Other peers learn of the block from these, or when they poll. */
const maxAnnouncedTo = 50;

/**
 * Creates the function that announces the current position. A peer with an announcement in progress gets newer
 * positions after that.
 */
export function createAnnounce({ book, dialer, position }: AnnounceDeps): () => void {
  const announcing = new Set<string>();

  async function announceTo(endpoint: string): Promise<void> {
    announcing.add(endpoint);
    let announced: Position = { number: -1n, statedMs: 0 };
    while (isBehind(announced, position())) {
      // A dial in progress may have sent an older position.
      await dialer.dialInProgress(endpoint);
      announced = position();
      await dialer.dial(endpoint, 0);
    }
    announcing.delete(endpoint);
  }

  return () => {
    const current = position();
    book
      .healthy()
      .filter(
        ({ endpoint, head, statedMs }) =>
          !announcing.has(endpoint) && isBehind({ number: head?.number ?? 0n, statedMs }, current),
      )
      .slice(0, maxAnnouncedTo)
      .forEach(({ endpoint }) => void announceTo(endpoint));
  };
}

function isBehind(peer: Position, target: Position): boolean {
  return peer.number < target.number || (peer.number === target.number && peer.statedMs < target.statedMs);
}
