/**
 * Synchronizes the chain with the verified peers. Streams missing blocks from one peer, and verifies and applies each.
 * Continues with another peer if the stream stalls, ends early or contains an invalid block. Applied blocks stay
 * applied, so synchronization always resumes after the last one. Peers that sent blocks are preferred to those that only
 * report them, so that the latter, any number of them, delay a block by 2 s at most.
 */
import type { Block } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { LRUCache } from "lru-cache";
import { Stalled, withStallTimeout } from "../../base/async/stall-timeout.js";
import { createRateMeter } from "../../base/rate-meter.js";
import { CallError } from "../../rpc/channel.js";
import { RpcError } from "../../rpc/errors.js";
import type { BookEntry } from "../address-book/peer.js";
import { type PeerBook, shuffle } from "../address-book/peer-book.js";
import { peerReasons } from "../address-book/peer-reasons.js";

export interface SyncDeps {
  /** Key and internal address of this node. */
  readonly self: { readonly key: { readonly publicKey: string }; endpoint(): string };
  readonly book: Pick<PeerBook, "healthy" | "highestBlock" | "penalize" | "pause" | "recordFailure">;
  readonly chain: {
    /** Returns the number of the latest block; undefined if there is no chain. */
    head(): bigint | undefined;
    /**
     * Applies the next block.
     *
     * @throws RpcError if the block is not a valid next block.
     */
    apply(block: Block): Promise<unknown>;
    /**
     * Records the header of a block that is not applied, for the detection of forks.
     *
     * @throws RpcError if the signature is invalid.
     */
    receive(block: Block): unknown;
  };
  /**
   * Streams a peer's blocks, starting at a number, until the signal is aborted.
   *
   * @throws CallError
   */
  readonly blocks: (
    endpoint: string,
    fromNumber: bigint,
    signal: AbortSignal,
  ) => AsyncIterable<{ readonly block?: Block | undefined }>;
  readonly nowMs: () => number;
  /** Called for errors that no peer caused. */
  readonly onError: (error: unknown) => void;
  /** Called when the synchronization has caught up or cannot continue. */
  readonly onEnd: () => void;
  /** Called with the endpoint and the reason when a peer is dropped. */
  readonly onPeerDropped: (endpoint: string, reason: string) => void;
}

/** Reason to drop a peer, and the change to its entry in the address book; none for a peer that is only slow. */
interface PeerDrop {
  readonly record?: "pause" | "penalize" | "recordFailure";
  readonly reason: string;
}

/** Waiting time in milliseconds within which a peer must send {@link minBlocks} blocks. Otherwise it is slow. */
const slowAfterMs = 10_000;
const minBlocks = 10;
/** Interval in milliseconds at which a peer that has sent no block yet is left if another one has the block. */
const firstBlockMs = 2_000;
/** Limit on the peers of which the rank is kept. */
const maxRanks = 1_000;
/** Rank of peers that sent blocks, and of those that were not asked. Those that failed follow, the latest last. */
const rank = { sent: 0, unknown: 1 };
/** Seconds over which the rate of blocks is averaged. */
const rateWindowS = 5;

export type Sync = ReturnType<typeof createSync>;

/** Progress of the synchronization. */
export type SyncProgress = NonNullable<ReturnType<Sync["progress"]>>;

/** Creates a synchronization. It stays idle until `kick` is called. */
export function createSync({ self, book, chain, blocks, nowMs, onError, onEnd, onPeerDropped }: SyncDeps) {
  const stopping = new AbortController();
  const stopped = stopping.signal;
  const meter = createRateMeter(nowMs, rateWindowS);
  let running: Promise<void> | undefined;
  let peer: string | undefined;
  /** Ranks of peers as sources of blocks, by endpoint. */
  const ranks = new LRUCache<string, number>({ max: maxRanks });
  let failures = 0;

  function setRank(endpoint: string, hasFailed: boolean): void {
    failures += Number(hasFailed);
    ranks.set(endpoint, hasFailed ? rank.unknown + failures : rank.sent);
  }

  const rankOf = ({ endpoint }: Pick<BookEntry, "endpoint">): number => ranks.get(endpoint) ?? rank.unknown;

  /**
   * Returns the peers that have the next block, by their rank, then highest latest block first, in random order among
   * equals.
   */
  function candidates(): BookEntry[] {
    const number = chain.head();
    const usable = book
      .healthy()
      .filter(
        ({ head, lowestBlock }) =>
          number !== undefined && head !== undefined && head.number > number && lowestBlock <= number + 1n,
      );
    return shuffle(usable).sort((a, b) => rankOf(a) - rankOf(b) || Number(b.head!.number - a.head!.number));
  }

  /** Returns true if another peer has the next block, and has not failed, or did so earlier. */
  function hasOther(peer: BookEntry): boolean {
    const highest = Math.max(rankOf(peer), rank.unknown);
    return candidates().some((other) => other.endpoint !== peer.endpoint && rankOf(other) <= highest);
  }

  async function catchUp(): Promise<void> {
    for (;;) {
      const [next] = candidates();
      if (stopped.aborted || next === undefined) {
        return;
      }
      peer = next.endpoint;
      const drop = await download(next);
      peer = undefined;
      setRank(next.endpoint, drop !== undefined);
      if (drop !== undefined) {
        onPeerDropped(next.endpoint, drop.reason);
        if (drop.record !== undefined) {
          book[drop.record](next.endpoint, drop.reason);
        }
      }
    }
  }

  /**
   * Applies the blocks of a peer. Returns undefined once all are applied or the synchronization is stopped; otherwise
   * the reason to drop the peer. Throws errors that the peer did not cause.
   */
  async function download(source: BookEntry): Promise<PeerDrop | undefined> {
    const { endpoint } = source;
    const controller = new AbortController();
    const signal = AbortSignal.any([stopped, controller.signal]);
    let isLeft = false;
    const timer = setInterval(() => {
      isLeft = hasOther(source);
      if (isLeft) {
        controller.abort();
      }
    }, firstBlockMs);
    try {
      const stream = blocks(endpoint, chain.head()! + 1n, signal);
      return await applyAll(source, stream, () => clearInterval(timer));
    } catch (error) {
      if (isLeft && error instanceof CallError) {
        return { reason: `It sent no block for ${firstBlockMs / 1_000} s, and another peer has the block.` };
      }
      if (stopped.aborted && error instanceof CallError) {
        return undefined;
      }
      if (error instanceof Stalled) {
        return { record: "pause", reason: peerReasons.stalled(error.message) };
      }
      // A transient error is caused by this node, so the block itself is not rejected.
      if (error instanceof RpcError && !error.kind.transient) {
        await compareLatestBlock(endpoint, signal);
        return { record: "penalize", reason: peerReasons.invalidData(`It sent an invalid block. ${error.message}`) };
      }
      if (error instanceof CallError) {
        return error.isResponse
          ? { record: "pause", reason: describeRefusal(error) }
          : { record: "recordFailure", reason: peerReasons.unreachable(error.message) };
      }
      throw error;
    } finally {
      clearInterval(timer);
      controller.abort();
    }
  }

  const describeRefusal = ({ isDenied, message }: CallError): string =>
    isDenied ? peerReasons.unlistedThere(self.endpoint(), self.key.publicKey) : peerReasons.refusedBlocks(message);

  /** Applies a stream of blocks. Calls a function once one has arrived. */
  async function applyAll(
    source: BookEntry,
    stream: ReturnType<typeof blocks>,
    onFirst: () => void,
  ): Promise<PeerDrop | undefined> {
    const reportedHead = source.head!.number;
    // Only the time spent waiting for blocks counts, not the time to apply them.
    let [waitedMs, count, waitingSinceMs] = [0, 0, nowMs()];
    for await (const { block } of withStallTimeout(stream, "block")) {
      onFirst();
      waitedMs += nowMs() - waitingSinceMs;
      if (stopped.aborted) {
        return undefined;
      }
      if (block === undefined) {
        throw new RpcError("INVALID_REQUEST", "It sent a message without a block.");
      }
      await chain.apply(block);
      meter.count(1);
      count++;
      if (waitedMs >= slowAfterMs) {
        if (count < minBlocks && hasOther(source)) {
          return { reason: "It is slow, and another peer is available." };
        }
        [waitedMs, count] = [0, 0];
      }
      waitingSinceMs = nowMs();
    }
    return stopped.aborted || chain.head()! >= reportedHead
      ? undefined
      : { record: "pause", reason: peerReasons.missingBlock(reportedHead) };
  }

  /**
   * Requests the peer's block with the number of the latest block here. A different block proves that the chain is
   * forked.
   */
  async function compareLatestBlock(endpoint: string, signal: AbortSignal): Promise<void> {
    const number = chain.head()!;
    if (number === 0n) {
      return;
    }
    try {
      const { value } = await withStallTimeout(blocks(endpoint, number, signal)).next();
      if (value?.block !== undefined) {
        chain.receive(value.block);
      }
    } catch {
      // The reason to drop the peer stays the invalid block.
    }
  }

  return {
    /** Starts the synchronization, unless it is running or no peer has further blocks. */
    kick(): void {
      if (running === undefined && !stopped.aborted && candidates().length > 0) {
        meter.reset();
        running = catchUp()
          .catch(onError)
          .finally(() => {
            running = undefined;
            onEnd();
          });
      }
    },
    /** Returns true while the synchronization is running. */
    isActive: () => running !== undefined,
    /** Resolves when the synchronization is not running. */
    settled: () => running ?? Promise.resolve(),
    /** Returns the progress; undefined while the synchronization is not running. */
    progress() {
      const block = chain.head();
      const targetBlock = book.highestBlock();
      if (running === undefined || block === undefined || targetBlock === undefined) {
        return undefined;
      }
      const blocksPerS = Math.round(meter.perS() * 10) / 10;
      const missingBlocks = Number(targetBlock > block ? targetBlock - block : 0n);
      return {
        ...{ block, targetBlock, blocksPerS },
        /** Estimated remaining time in seconds; undefined while no blocks arrive. */
        leftS: blocksPerS > 0 ? Math.ceil(missingBlocks / blocksPerS) : undefined,
        /** Endpoint of the peer that sends the blocks; undefined between two peers. */
        peer,
      };
    },
    /** Stops the synchronization after the block in progress. */
    async stop(): Promise<void> {
      stopping.abort();
      await running;
    },
  };
}
