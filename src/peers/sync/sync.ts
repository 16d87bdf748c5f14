/**
 * Synchronizes the chain with the verified peers. Streams missing blocks from one peer, and verifies and applies each.
 * Continues with another peer if the stream stalls, ends early or contains an invalid block. Applied blocks stay
 * applied, so synchronization always resumes after the last one.
 */
import { createDownload, type DownloadDeps, type PeerDrop } from "./download.js";
import type { BookEntry } from "../address-book/peer.js";
import type { PeerBook } from "../address-book/peer-book.js";
import { createRateMeter } from "./slow-peer-detector.js";

/** Progress of the synchronization. */
export interface SyncProgress {
  readonly block: bigint;
  readonly targetBlock: bigint;
  readonly blocksPerS: number;
  /** Estimated remaining time in seconds; undefined while no blocks arrive. */
  readonly leftS: number | undefined;
  /** Endpoint of the peer that sends the blocks; undefined between two peers. */
  readonly peer: string | undefined;
}

export interface SyncDeps extends Omit<DownloadDeps, "hasOther" | "onBlock"> {
  readonly book: Pick<PeerBook, "healthy" | "highestBlock" | "penalize" | "pause" | "recordFailure">;
  /** Called for errors that no peer caused. */
  readonly onError: (error: unknown) => void;
  /** Called when the synchronization has caught up or cannot continue. */
  readonly onEnd: () => void;
  /** Called with the endpoint and the reason when a peer is dropped. */
  readonly onPeerDropped: (endpoint: string, reason: string) => void;
}

export interface Sync {
  /** Starts the synchronization, unless it is running or no peer has further blocks. */
  kick(): void;
  /** Returns true while the synchronization is running. */
  isActive(): boolean;
  /** Resolves when the synchronization is not running. */
  settled(): Promise<void>;
  /** Returns the progress; undefined while the synchronization is not running. */
  progress(): SyncProgress | undefined;
  /** Stops the synchronization after the block in progress. */
  stop(): Promise<void>;
}

/** Creates a synchronization. It stays idle until `kick` is called. */
export function createSync(deps: SyncDeps): Sync {
  const { book, chain, nowMs, onError, onEnd } = deps;
  const stopped = new AbortController();
  const meter = createRateMeter(nowMs);
  const candidates = (): BookEntry[] => findCandidates(book.healthy(), chain.head());
  const download = createDownload({
    ...deps,
    hasOther: (endpoint) => candidates().some((other) => other.endpoint !== endpoint),
    onBlock: () => meter.count(),
  });
  let running: Promise<void> | undefined;
  let peer: string | undefined;

  async function catchUp(): Promise<void> {
    let droppedEndpoint: string | undefined;
    for (;;) {
      const peers = candidates();
      const next = peers.find(({ endpoint }) => endpoint !== droppedEndpoint) ?? peers[0];
      if (stopped.signal.aborted || next === undefined) {
        return;
      }
      peer = next.endpoint;
      const drop = await download(next, stopped.signal);
      peer = undefined;
      droppedEndpoint = drop && next.endpoint;
      if (drop !== undefined) {
        recordDrop(deps, next.endpoint, drop);
      }
    }
  }

  return {
    kick() {
      if (running === undefined && !stopped.signal.aborted && candidates().length > 0) {
        meter.reset();
        running = catchUp()
          .catch(onError)
          .finally(() => {
            running = undefined;
            onEnd();
          });
      }
    },
    isActive: () => running !== undefined,
    settled: () => running ?? Promise.resolve(),
    progress() {
      const block = chain.head();
      const targetBlock = book.highestBlock();
      if (running === undefined || block === undefined || targetBlock === undefined) {
        return undefined;
      }
      const blocksPerS = meter.perS();
      const missingBlocks = Number(targetBlock > block ? targetBlock - block : 0n);
      return { block, targetBlock, blocksPerS, leftS: blocksPerS > 0 ? missingBlocks / blocksPerS : undefined, peer };
    },
    async stop() {
      stopped.abort();
      await running;
    },
  };
}

/** Returns the peers that have the next block, highest latest block first, in random order among equals. */
function findCandidates(peers: readonly BookEntry[], number: bigint | undefined): BookEntry[] {
  if (number === undefined) {
    return [];
  }
  return peers
    .filter(({ head, lowestBlock }) => head !== undefined && head.number > number && lowestBlock <= number + 1n)
    .map((entry) => ({ entry, chance: Math.random() }))
    .sort((a, b) => Number(b.entry.head!.number - a.entry.head!.number) || a.chance - b.chance)
    .map(({ entry }) => entry);
}

function recordDrop({ book, onPeerDropped }: SyncDeps, endpoint: string, { cause, reason }: PeerDrop): void {
  onPeerDropped(endpoint, reason);
  if (cause === "dishonest") {
    book.penalize(endpoint, reason);
  } else if (cause === "silent") {
    book.pause(endpoint, reason);
  } else if (cause === "unreachable") {
    book.recordFailure(endpoint);
  }
}
