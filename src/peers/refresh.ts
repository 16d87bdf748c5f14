/** Keeps the peer book true: asks every peer, all at once, each with a deadline. */
import type { PeerClient } from "./client.js";
import type { LoopTask } from "./main-loop.js";
import type { PeerBook } from "./peer-book.js";

/** The main-loop task that asks every peer for its state. */
export function createRefreshPeers(book: PeerBook, client: PeerClient, deadlineMs: number): LoopTask {
  return {
    name: "refresh-peers",
    async run() {
      await Promise.all(
        book.entries.map(async ({ url }) => {
          try {
            book.recordAnswer(url, await client.ask(url, deadlineMs));
          } catch {
            book.recordSilence(url);
          }
        }),
      );
    },
  };
}
