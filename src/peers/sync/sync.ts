/**
 * Brings the chain to the head of the verified peers: streams the missing blocks from one of them, checks and applies
 * each, and goes on with another one when it stalls, ends early or sends what no authority has made. What was applied is
 * applied, so it resumes where it stopped, whatever stopped it.
 */
import { createDownload, type DownloadDeps, type Left } from "./download.js";
import type { BookEntry } from "../address-book/peer.js";
import type { PeerBook } from "../address-book/peer-book.js";
import { createRateMeter } from "./slow-peer-detector.js";

/** How far it is. */
export interface SyncProgress {
  readonly block: bigint;
  readonly targetBlock: bigint;
  readonly blocksPerS: number;
  /** Undefined while nothing comes. */
  readonly leftS: number | undefined;
  /** Where the blocks come from; undefined between two peers. */
  readonly peer: string | undefined;
}

export interface SyncDeps extends Omit<DownloadDeps, "hasOther" | "onBlock"> {
  readonly book: Pick<PeerBook, "believed" | "highestBlock" | "distrust" | "pause" | "recordFailure">;
  /** Hears of trouble that is none of a peer's. */
  readonly onError: (error: unknown) => void;
  /** Hears that it has caught up, or can go no further. */
  readonly onEnd: () => void;
  /** Hears of a peer that is left, and why. */
  readonly onLeft: (endpoint: string, reason: string) => void;
}

export interface Sync {
  /** Catches up, if there is anything to catch up with and it is not at it already. */
  kick(): void;
  /** It is catching up. */
  isActive(): boolean;
  /** Resolves when it is not catching up. */
  settled(): Promise<void>;
  /** How far it is; undefined while it is not catching up. */
  progress(): SyncProgress | undefined;
  /** Ends, after the block under way. */
  stop(): Promise<void>;
}

/** Builds a synchronisation; it does nothing before it is kicked. */
export function createSync(deps: SyncDeps): Sync {
  const { book, chain, nowMs, onError, onEnd } = deps;
  const stopped = new AbortController();
  const meter = createRateMeter(nowMs);
  const candidates = (): BookEntry[] => findCandidates(book.believed(), chain.head());
  const download = createDownload({
    ...deps,
    hasOther: (endpoint) => candidates().some((other) => other.endpoint !== endpoint),
    onBlock: () => meter.count(),
  });
  let underWay: Promise<void> | undefined;
  let peer: string | undefined;

  async function catchUp(): Promise<void> {
    let left: string | undefined;
    for (;;) {
      const found = candidates();
      const next = found.find(({ endpoint }) => endpoint !== left) ?? found[0];
      if (stopped.signal.aborted || next === undefined) {
        return;
      }
      peer = next.endpoint;
      const end = await download(next, stopped.signal);
      peer = undefined;
      left = end && next.endpoint;
      if (end !== undefined) {
        recordLeft(deps, next.endpoint, end);
      }
    }
  }

  return {
    kick() {
      if (underWay === undefined && !stopped.signal.aborted && candidates().length > 0) {
        meter.reset();
        underWay = catchUp()
          .catch(onError)
          .finally(() => {
            underWay = undefined;
            onEnd();
          });
      }
    },
    isActive: () => underWay !== undefined,
    settled: () => underWay ?? Promise.resolve(),
    progress() {
      const block = chain.head();
      const targetBlock = book.highestBlock();
      if (underWay === undefined || block === undefined || targetBlock === undefined) {
        return undefined;
      }
      const blocksPerS = meter.perS();
      const left = Number(targetBlock > block ? targetBlock - block : 0n);
      return { block, targetBlock, blocksPerS, leftS: blocksPerS > 0 ? left / blocksPerS : undefined, peer };
    },
    async stop() {
      stopped.abort();
      await underWay;
    },
  };
}

/** Those that have the next block, which is missing here: the furthest first, and chance among equals. */
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

function recordLeft({ book, onLeft }: SyncDeps, endpoint: string, { cause, reason }: Left): void {
  onLeft(endpoint, reason);
  if (cause === "dishonest") {
    book.distrust(endpoint, reason);
  } else if (cause === "silent") {
    book.pause(endpoint, reason);
  } else if (cause === "unreachable") {
    book.recordFailure(endpoint);
  }
}
